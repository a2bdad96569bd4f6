package claude

import (
	"slices"
	"strings"
	"unicode"
)

// smallFamily is the family of the model that the CLI uses for small tasks. Examples are reading a web page, and
// searching with a subagent.
const smallFamily = "haiku"

// families lists the families of models. Aliases and full names contain these words.
var families = []string{"haiku", "sonnet", "opus", "fable"}

// aliases lists the aliases that can mean models of several families. The CLI's version and the account decide which of
// them an alias means.
var aliases = map[string][]string{
	"opusplan": {"opus", "sonnet"},
	"best":     {"opus", "fable"},
	"default":  {"opus", "sonnet"},
}

// Permits reports whether an invocation may send a request for a model, the argument asked. The argument model is the
// model with which the invocation was started. Permits accepts all full names of that model, and the model for small
// tasks.
//
// Permits compares families instead of names, because versions of the CLI map aliases and old model names to different
// full names.
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

// isNamed reports whether a variable of the operator's environment contains the name of the requested model.
func (c *CLI) isNamed(asked, variable string) bool {
	return asked != "" && asked == withoutWindow(lookupVariable(c.options.Environ, variable))
}

// withoutWindow returns model without the suffix for a larger context window.
func withoutWindow(model string) string { return strings.TrimSuffix(model, "[1m]") }

// familiesOf returns the model families that an alias or a full name can mean.
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

// LimitedModel returns the word in the names of the models that a limit of an account concerns; "" means all models.
// The argument kind is the provider's name for the limit, and model is the model of the session that has met it. A
// limit of one family has its name. A limit of an unknown kind concerns the session's model: sessions with other models
// find out.
func LimitedModel(kind, model string) string {
	switch kind {
	case "", "five_hour", "seven_day", "overage":
		return ""
	}
	model = strings.ToLower(withoutWindow(model))
	if family := kind[strings.LastIndexByte(kind, '_')+1:]; family != "" && strings.Contains(model, family) {
		return family
	}
	return model
}
