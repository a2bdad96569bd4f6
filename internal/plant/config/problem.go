package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/plant/config/envfile"
)

// Problem is one mistake in the environment or in the file of settings.
type Problem struct {
	// Variable is the full name of the variable.
	Variable string
	// Sentence names the variable, and describes the problem and the allowed values. If the value is from the file of
	// settings, the sentence begins with the file and the line. It contains the variable's value, unless the value is
	// secret.
	Sentence string
}

// Error lists all mistakes in the environment and in the file of settings.
type Error struct {
	Problems []Problem
}

// Error returns one line for a single problem. For several problems, it returns a heading and one line for each
// problem.
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

// problems collects problems with variables. For each setting, it keeps only the first problem: if a value did not
// parse, later checks of the same setting would report misleading problems.
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

// must records a problem with the variable Prefix+name if ok is false. The text from format and args continues the
// phrase "it must ...".
func (p *problems) must(name string, ok bool, format string, args ...any) {
	if !ok {
		p.add(name, mustSentence(Prefix+name, p.vars[Prefix+name], fmt.Sprintf(format, args...)))
	}
}

// given reports whether the environment sets the variable Prefix+name to a value. A check that compares two settings
// calls given, and skips a setting that has its default value. Otherwise, the default of one setting could make the
// operator's value of the other setting invalid.
func (p *problems) given(name string) bool { return p.vars[Prefix+name] != "" }

// locate adds to each problem with a value of the file of settings where the value is.
func (p *problems) locate(file envfile.File, vars map[string]string) {
	for i := range p.list {
		problem := &p.list[i]
		if line := file.Line(problem.Variable, vars[problem.Variable]); line > 0 {
			problem.Sentence = fmt.Sprintf("%s:%d: %s", file.Path, line, problem.Sentence)
		}
	}
}

func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return &Error{Problems: p.list}
}

// mustSentence returns a sentence such as "VARIABLE is VALUE; it must WHAT." It omits the value of a secret variable,
// and truncates a long value.
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
