package config

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with the environment.
type Problem struct {
	// Variable is the full name of the variable that it is about.
	Variable string
	// Sentence says what is wrong and what is allowed. It names the variable, and the
	// value unless that is secret.
	Sentence string
}

// Error is everything that is wrong with the environment.
type Error struct {
	Problems []Problem
}

// Error returns one line for a single problem, else a heading and a line for each.
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

// problems collects what is wrong. It keeps the first problem of each variable: what
// follows from a value that could not even be read would only confuse.
type problems struct {
	vars map[string]string
	list []Problem
	seen map[string]bool
}

// add records that the variable called Prefix+name is wrong, in the words of sentence.
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

// must records a problem unless ok. format and args complete "it must".
func (p *problems) must(name string, ok bool, format string, args ...any) {
	if !ok {
		p.add(name, mustSentence(Prefix+name, p.vars[Prefix+name], fmt.Sprintf(format, args...)))
	}
}

// given reports whether the environment sets Prefix+name. Checks across settings ask,
// because a default must never contradict what somebody did set.
func (p *problems) given(name string) bool { return p.vars[Prefix+name] != "" }

func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return &Error{Problems: p.list}
}

// mustSentence says that variable, which has value, must do what. It shows no value of
// secretVariables, and no more than the beginning of a long one.
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
