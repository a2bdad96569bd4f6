package supervisor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/plant/config"
)

// CheckVariables says in a sentence which variables of CLAUDEOPS_PASS_ENV reach no program that they are named for; ""
// if there are none.
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
	var problems []string
	if len(nobodys) > 0 {
		all := strings.Join(nobodys, ", ")
		problem := fmt.Sprintf("no program gets %s: name one in %sPASS_ENV, as in %s=PROGRAM", all, config.Prefix,
			nobodys[0])
		if !slices.ContainsFunc(nobodys, guard.IsSecret) {
			problem += fmt.Sprintf(", or write %s=%s if all of an agent's programs may read it", nobodys[0], cliProgram)
		}
		problems = append(problems, problem)
	}
	for _, entry := range cfg.Claude.PassEnv {
		switch {
		case entry.Program == cliProgram && guard.IsSecret(entry.Variable):
			const hidden = "the CLI gets %s and its commands do not, because the name is that of a secret: name a " +
				"program, as in %s=PROGRAM"
			problems = append(problems, fmt.Sprintf(hidden, entry.Variable, entry.Variable))
		case entry.Program != "" && entry.Program != cliProgram &&
			guard.Host{}.LookPath(entry.Program, policy.Directories) == "":
			problems = append(problems,
				fmt.Sprintf("%s is named for %s, which is in none of the policy's directories of programs (%s)",
					entry.Variable, entry.Program, strings.Join(policy.Directories, ", ")))
		}
	}
	return strings.Join(problems, "; "), nil
}
