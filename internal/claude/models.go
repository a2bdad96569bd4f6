package claude

import (
	"slices"
	"strings"
	"unicode"
)

// smallFamily is the family of the model that the CLI uses for small tasks: to read a web page, or for a subagent that
// searches (2.1.197).
const smallFamily = "haiku"

// families are the families of models. Aliases and full names contain these words.
var families = []string{"haiku", "sonnet", "opus", "fable"}

// aliases are the aliases for models of more than one family. The version and the account decide which one is used.
var aliases = map[string][]string{
	"opusplan": {"opus", "sonnet"},
	"best":     {"opus", "fable"},
	"default":  {"opus", "sonnet"},
}

// Permits reports whether an invocation with Model model may ask the API for the model asked: its own model under any full
// name, or the one for small tasks.
//
// It compares families only, because versions differ in the full name of an alias, and in the old names that they replace.
func (c *CLI) Permits(model, asked string) bool {
	model = withoutWindow(model)
	if asked == model || c.isNamed(asked, "ANTHROPIC_SMALL_FAST_MODEL") {
		return true
	}
	for _, family := range append(familiesOf(model), smallFamily) {
		if slices.Equal(familiesOf(asked), []string{family}) && strings.Contains(asked, "claude") {
			return true
		}
		if c.isNamed(asked, "ANTHROPIC_DEFAULT_"+strings.ToUpper(family)+"_MODEL") {
			return true
		}
	}
	return false
}

// isNamed reports whether the variable in the operator's environment is set to the model asked.
func (c *CLI) isNamed(asked, variable string) bool {
	return asked != "" && asked == withoutWindow(lookupVariable(c.options.Environ, variable))
}

// withoutWindow returns model without the suffix for a larger window.
func withoutWindow(model string) string { return strings.TrimSuffix(model, "[1m]") }

// familiesOf returns the families that an alias or a full name stands for.
func familiesOf(model string) []string {
	if several, ok := aliases[model]; ok {
		return slices.Clone(several)
	}
	words := strings.FieldsFunc(model, func(r rune) bool { return !unicode.IsLetter(r) })
	var found []string
	for _, family := range families {
		if slices.Contains(words, family) {
			found = append(found, family)
		}
	}
	return found
}
