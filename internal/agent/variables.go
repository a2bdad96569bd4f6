package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/claude"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/guard"
)

// variablesOf returns the passed variables of the programs with certain names, for programs that the worker starts itself.
func (r *Runner) variablesOf(programs ...string) map[string]string {
	variables := map[string]string{}
	for _, variable := range claude.Passed(ClaudeOptions(r.settings, r.environ)) {
		name, value, _ := strings.Cut(variable, "=")
		if slices.ContainsFunc(programs, func(program string) bool {
			return guard.MatchesAny(r.guards.policy.VariablesOf(program), name)
		}) {
			variables[name] = value
		}
	}
	return variables
}

// CheckVariables says in a sentence which variables of CLAUDEOPS_PASS_ENV no program gets; "" if there are none.
func CheckVariables(cfg config.Config, environ []string) (string, error) {
	policy, err := cfg.Guard.LoadPolicy()
	if err != nil {
		return "", err
	}
	var nobodys []string
	for _, variable := range claude.Passed(ClaudeOptions(cfg.Claude, environ)) {
		if name, _, _ := strings.Cut(variable, "="); !policy.Reaches(name) {
			nobodys = append(nobodys, name)
		}
	}
	if len(nobodys) == 0 {
		return "", nil
	}
	return fmt.Sprintf(
		"no program gets %s: name one in %sPASS_ENV, as in %s=PROGRAM, or write %s=%s if all of an agent's programs may read it",
		strings.Join(nobodys, ", "), config.Prefix, nobodys[0], nobodys[0], cliProgram), nil
}
