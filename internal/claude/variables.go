package claude

import "strings"

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
