package claude

import (
	"slices"
	"strings"
	"unicode"
)

// smallFamily is the family of the model that the CLI uses beside the main one: to read a web page, or for a
// subagent that searches (2.1.197).
const smallFamily = "haiku"

// families are the kinds of models, as aliases and full names have them.
var families = []string{"haiku", "sonnet", "opus", "fable"}

// aliases are the names that stand for models of more than one family, depending on the version and the account.
var aliases = map[string][]string{
	"opusplan": {"opus", "sonnet"},
	"best":     {"opus", "fable"},
	"default":  {"opus", "sonnet"},
}

// Permits reports whether an invocation with Model model has reason to ask the API for the model named asked: its
// own, by whatever full name, or the small one that the CLI uses beside it.
//
// Which full name an alias stands for, and which old name is replaced by a newer one, differs between versions.
// What counts is therefore the family.
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

// isNamed reports whether the operator's environment names the model asked in a variable.
func (c *CLI) isNamed(asked, variable string) bool {
	return asked != "" && asked == withoutWindow(lookupVariable(c.options.Environ, variable))
}

// withoutWindow returns model without the suffix that asks for a larger window.
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
