package config

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one mistake in the environment.
type Problem struct {
	// Variable is the full name of the variable.
	Variable string
	// Sentence describes the problem and the allowed values. It names the variable. It also contains the value if the
	// value is not secret.
	Sentence string
}

// Error lists all mistakes in the environment.
type Error struct {
	Problems []Problem
}

// Error returns one line for a single problem. For several problems it returns a heading and one line for each.
func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return "configuration: " + e.Problems[0].Sentence
	}
	var text strings.Builder
	fmt.Fprintf(&text, "configuration: %d problems:", len(e.Problems))
	for _, problem := range e.Problems {
		text.WriteString("\n  - " + problem.Sentence)
	}
	return text.String()
}

// problems collects the problems of all variables. It keeps only the first problem of each variable. If the value did
// not parse, later checks of the variable would report misleading problems.
type problems struct {
	vars map[string]string
	list []Problem
	seen map[string]bool
}

// add records a problem with the variable called Prefix+name.
func (p *problems) add(name, sentence string) {
	variable := Prefix + name
	if p.seen[variable] {
		return
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[variable] = true
	p.list = append(p.list, Problem{Variable: variable, Sentence: sentence})
}

// must records a problem if ok is false. The arguments format and args complete the phrase "it must".
func (p *problems) must(name string, ok bool, format string, args ...any) {
	if !ok {
		p.add(name, mustSentence(Prefix+name, p.vars[Prefix+name], fmt.Sprintf(format, args...)))
	}
}

// given reports whether the environment sets Prefix+name. Checks that compare several settings use it to skip settings
// that have their default. Without this, a default could make a value of the operator invalid.
func (p *problems) given(name string) bool { return p.vars[Prefix+name] != "" }

func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return &Error{Problems: p.list}
}

// mustSentence returns a sentence such as "VARIABLE is VALUE; it must WHAT." It omits the values of secretVariables,
// and truncates long values.
func mustSentence(variable, value, what string) string {
	const shown = 120
	switch {
	case slices.Contains(secretVariables, variable):
		return fmt.Sprintf("%s (value not shown): it must %s.", variable, what)
	case value == "":
		return fmt.Sprintf("%s is not set; it must %s.", variable, what)
	case len(value) > shown:
		return fmt.Sprintf("%s is %q...; it must %s.", variable, strings.ToValidUTF8(value[:shown], ""), what)
	default:
		return fmt.Sprintf("%s is %q; it must %s.", variable, value, what)
	}
}
