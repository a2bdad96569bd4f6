package claude

import (
	"maps"
	"slices"
	"strings"
)

// Variables returns the environment variables that this package passes to an invocation's commands, by name. These are
// the variables on the allow list, the fixed variables, and the invocation's own variables (own). The CLI adds further
// variables.
func Variables(options Options, own map[string]string) map[string]string {
	cli := &CLI{options: options.withDefaults()}
	variables := map[string]string{}
	for _, variable := range cli.environment(Invocation{Env: own}) {
		name, value, _ := strings.Cut(variable, "=")
		variables[name] = value
	}
	return variables
}

// Passed returns the variables that only certain programs of the agent get, as NAME=value and sorted by name: those of
// ProgramEnv. They never contain a credential for the model's API or for the export of traces.
func Passed(options Options) []string {
	return (&CLI{options: options}).passed()
}

func (c *CLI) passed() []string {
	variables := map[string]string{}
	for _, variable := range c.options.Environ {
		name, value, _ := strings.Cut(variable, "=")
		named := slices.ContainsFunc(c.options.ProgramEnv,
			func(pattern string) bool { return matchesName(pattern, name) })
		if named && !isTelemetrySecret(name) {
			variables[name] = value
		}
	}
	withoutSecrets(variables, c.options.Environ)
	var passed []string
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		passed = append(passed, name+"="+variables[name])
	}
	return passed
}
