package claude

import "strings"

// Variables returns the environment that an invocation's commands get from the driver, by name: what the allow-list passes
// on, what is fixed, and the invocation's own. The CLI adds some of its own to them.
func Variables(options Options, own map[string]string) map[string]string {
	cli := &CLI{options: options.withDefaults()}
	variables := map[string]string{}
	for _, variable := range cli.environment(Invocation{Env: own}) {
		name, value, _ := strings.Cut(variable, "=")
		variables[name] = value
	}
	return variables
}
