package guard

import (
	"maps"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// walk holds the state that all shells of one script share.
type walk struct {
	visitor Visitor
	env     Environment
	steps   int
	depth   int
}

// shell is the state of one shell process, or its state in one branch of the script.
type shell struct {
	*walk
	// vars holds the variables that the script has set.
	vars map[string]Word
	// arrays holds the arrays whose elements are known.
	arrays map[string][]Word
	funcs  map[string]*syntax.Stmt
	// args holds the positional parameters; nil if they are unknown.
	args []Word
	dir  Word
	// locals holds the local variables of the current function. Each name maps to the variable's value outside of the
	// function. Outside of functions, locals is nil.
	locals map[string]Word
	// top is true for the top-level statements of a script, and false within a loop, a branch or a pipe.
	top bool
	// strict is true after set -e: a failing command ends the script.
	strict bool
	// input is the text that a here-document supplies on the standard input.
	input Word
	// stdin describes the standard input. The field output describes the output of the last command.
	stdin, output Output
	// repeated is true within a loop whose number of rounds is unknown.
	repeated bool
}

// nested calls the function read with the nesting depth increased by one. If the depth exceeds maxDepth, nested fails.
func (s *shell) nested(read func() error) error {
	s.depth++
	if s.depth > maxDepth {
		return unclear("a script that is nested so deeply", "write it flat")
	}
	defer func() { s.depth-- }()
	return read()
}

// fork returns a copy of the shell. The copy is for a subshell, or for a branch that the script possibly does not take.
func (s *shell) fork() *shell {
	copied := *s
	copied.top = false
	copied.vars, copied.arrays, copied.funcs = maps.Clone(s.vars), maps.Clone(s.arrays), maps.Clone(s.funcs)
	return &copied
}

// join merges the states of branches of the script into the shell. A variable, or the directory, becomes unknown if its
// value differs between the branches.
func (s *shell) join(branches ...*shell) {
	for _, b := range branches {
		s.joinVariables(b)
		maps.DeleteFunc(s.arrays, func(name string, elements []Word) bool { return !slices.Equal(elements, b.arrays[name]) })
		for name, body := range b.funcs {
			if s.funcs[name] != body {
				s.funcs[name] = nil // several declarations: a call is unclear
			}
		}
		if b.dir != s.dir {
			s.dir = Word(anyText)
		}
		if !slices.Equal(b.args, s.args) || (b.args == nil) != (s.args == nil) {
			s.args = nil
		}
	}
}

func (s *shell) joinVariables(branch *shell) {
	for name, value := range branch.vars {
		if before, known := s.vars[name]; !known || before != value {
			s.vars[name] = union(before, value)
		}
	}
	for name := range s.vars {
		if _, known := branch.vars[name]; !known {
			s.vars[name] = Word(anyText)
		}
	}
}

// union returns the hole for a value that is either a or b. For two numbers this is the hole for a number. In all other
// cases it is the hole for any text.
func union(a, b Word) Word {
	if a.isNumber() && b.isNumber() {
		return Word(anyNumber)
	}
	return Word(anyText)
}
