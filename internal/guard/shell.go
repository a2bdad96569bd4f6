package guard

import (
	"maps"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// walk is what all shells of one script share.
type walk struct {
	visitor Visitor
	env     Environment
	steps   int
	depth   int
}

// shell is the state of one shell process, or of a branch of it.
type shell struct {
	*walk
	// vars are the variables that the script has set.
	vars map[string]Word
	// arrays are those whose elements are known.
	arrays map[string][]Word
	funcs  map[string]*syntax.Stmt
	// args are the positional parameters; nil if they are not known.
	args []Word
	dir  Word
	// locals are the variables that the function declares that runs, with their values outside of it; nil outside.
	locals map[string]Word
	// top is whether statements are those of the script itself, and not of a loop, a branch or a pipe.
	top bool
	// strict is whether a command that fails ends the script: set -e.
	strict bool
	// input is the text that a here-document puts on the standard input.
	input Word
	// stdin is what a pipe puts on the standard input, output what the last command prints.
	stdin, output Output
	// repeated is whether a loop runs what follows, nobody knows how often.
	repeated bool
}

// nested runs read one level deeper.
func (s *shell) nested(read func() error) error {
	s.depth++
	if s.depth > maxDepth {
		return unclear("a script that is nested so deeply", "write it flat")
	}
	defer func() { s.depth-- }()
	return read()
}

// fork returns a copy of the shell: a subshell, or a branch that may not be taken.
func (s *shell) fork() *shell {
	copied := *s
	copied.top = false
	copied.vars, copied.arrays, copied.funcs = maps.Clone(s.vars), maps.Clone(s.arrays), maps.Clone(s.funcs)
	return &copied
}

// join makes the shell what it is after one of the branches was taken.
func (s *shell) join(branches ...*shell) {
	for _, b := range branches {
		s.joinVariables(b)
		maps.DeleteFunc(s.arrays, func(name string, elements []Word) bool { return !slices.Equal(elements, b.arrays[name]) })
		for name, body := range b.funcs {
			if s.funcs[name] != body {
				s.funcs[name] = nil // one of several: a call is unclear
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
			s.vars[name] = either(before, value)
		}
	}
	for name := range s.vars {
		if _, known := branch.vars[name]; !known {
			s.vars[name] = Word(anyText)
		}
	}
}

// either returns what is known of a value that is one of two.
func either(a, b Word) Word {
	if a.isNumber() && b.isNumber() {
		return Word(anyNumber)
	}
	return Word(anyText)
}
