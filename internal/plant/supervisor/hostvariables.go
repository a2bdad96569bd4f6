package supervisor

import (
	"fmt"
	"maps"
	"path/filepath"
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

// ProgramsOutside returns the programs that the policy grants and that agents find, on their PATH, in a directory of
// which the policy grants no program: the guard denies them. The keys are names, the values paths.
func ProgramsOutside(cfg config.Config, environ []string) (map[string]string, error) {
	policy, err := cfg.Guard.LoadPolicy()
	if err != nil {
		return nil, err
	}
	dirs := filepath.SplitList(claude.Variables(ClaudeOptions(cfg.Claude, environ), nil)["PATH"])
	outside := map[string]string{}
	for name := range policy.Programs {
		path := guard.Host{}.LookPath(name, dirs)
		if path != "" && !slices.Contains(policy.Directories, filepath.Dir(path)) {
			outside[name] = path
		}
	}
	return outside, nil
}

// DescribeOutside says in a sentence which programs agents are denied by their place, and what to do; "" if there are
// none.
func DescribeOutside(outside map[string]string) string {
	if len(outside) == 0 {
		return ""
	}
	const most = 6
	names := slices.Sorted(maps.Keys(outside))
	paths := make([]string, 0, most)
	for _, name := range names[:min(len(names), most)] {
		paths = append(paths, outside[name])
	}
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
	}
	return fmt.Sprintf("agents are denied %s%s, because the policy grants programs of other directories only: put the "+
		"directories of the system first on the PATH, or move what is missing there to /usr/local/bin; or, if no "+
		"agent can write to %s, add it to `directories` in the policy", strings.Join(paths, ", "), more, filepath.Dir(outside[names[0]]))
}
