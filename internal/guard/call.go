package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call reads a simple command: assignments, a builtin, a function call or a program.
func (s *shell) call(c *syntax.CallExpr, redirects []*syntax.Redirect) error {
	if len(c.Args) == 0 {
		return s.assigns(c.Assigns)
	}
	env, err := s.assignsFor(c.Assigns)
	if err != nil {
		return err
	}
	words, err := s.words(c.Args)
	if err != nil || len(words) == 0 {
		return err
	}
	name, known := words[0].Known()
	if !known {
		return unclear("a command whose program is "+words[0].String(), "write the program's name")
	}
	body, declared := s.funcs[name]
	builtin, isBuiltin := builtins[name]
	if (declared || isBuiltin) && !isReadWithIFS(name, env) {
		return unclear("a variable in front of "+name, "set it in a line of its own")
	}
	if declared {
		err := s.callFunction(name, body, words[1:])
		s.output = Anything
		return err
	}
	if isBuiltin {
		return builtin(s, words, redirects)
	}
	return s.run(Command{Words: words, Env: env})
}

// isReadWithIFS reports whether the assignments in front of a builtin or a declared function are allowed. The only
// allowed assignment is IFS= in front of the builtin "read".
func isReadWithIFS(name string, env []Word) bool {
	return len(env) == 0 || name == "read" && len(env) == 1 && strings.HasPrefix(string(env[0]), "IFS=")
}

// run passes a program to the visitor.
func (s *shell) run(command Command) (err error) {
	command.Dir, command.Input, command.Stdin, command.Repeated = s.dir, s.input, s.stdin, s.repeated
	s.output, err = s.visitor.Run(command)
	return err
}

func (s *shell) callFunction(name string, body *syntax.Stmt, args []Word) error {
	if body == nil {
		return unclear("the function "+name+", of which there are several", "declare it once")
	}
	outer, locals := s.args, s.locals
	s.args, s.locals = append([]Word{}, args...), map[string]Word{}
	defer func() {
		for name, value := range s.locals { // the function may have set the outer variable before it declared the local one
			if s.vars[name] != value {
				s.vars[name] = Word(anyText)
			}
			delete(s.arrays, name)
		}
		s.args, s.locals = outer, locals
	}()
	err := s.nested(func() error { return s.stmt(body) })
	if returns(body) { // the statements after a return were possibly skipped
		s.forget([]*syntax.Stmt{body})
	}
	return err
}

// returns reports whether a function can return early.
func returns(body *syntax.Stmt) bool {
	found := false
	syntax.Walk(body, func(node syntax.Node) bool {
		if call, is := node.(*syntax.CallExpr); is && len(call.Args) > 0 {
			name, known := roughly(call.Args[0]).Known()
			found = found || !known || slices.Contains([]string{"return", "eval", "command", "builtin"}, name)
		}
		return !found
	})
	return found
}

// assigns reads assignments to variables of the shell.
func (s *shell) assigns(assigns []*syntax.Assign) error {
	for _, a := range assigns {
		value, err := s.assigned(a)
		if err != nil {
			return err
		}
		if !s.maySet(a.Name.Value) {
			return s.refuseToSet(a.Name.Value)
		}
		s.vars[a.Name.Value] = value
		delete(s.arrays, a.Name.Value)
		if err := s.elements(a); err != nil {
			return err
		}
	}
	return nil
}

// elements records the elements of an array that an assignment such as a=(x y) sets. It records nothing within a loop,
// a branch or a pipe.
func (s *shell) elements(a *syntax.Assign) error {
	if a.Array == nil || a.Append || a.Index != nil || !s.top {
		return nil
	}
	var words []*syntax.Word
	for _, element := range a.Array.Elems {
		if element.Index != nil || element.Value == nil {
			return nil
		}
		words = append(words, element.Value)
	}
	elements, err := s.words(words)
	if err == nil {
		s.arrays[a.Name.Value] = elements
	}
	return err
}

// assigned returns the value of an assignment.
func (s *shell) assigned(a *syntax.Assign) (Word, error) {
	if a.Index != nil {
		if err := s.subscript(a.Index); err != nil {
			return "", err
		}
	}
	if a.Array != nil {
		return Word(anyText), s.array(a.Array)
	}
	value, err := s.text(a.Value)
	if err != nil || a.Append || a.Index != nil {
		return Word(anyText), err
	}
	return value, nil
}

// array checks the elements of an array.
func (s *shell) array(array *syntax.ArrayExpr) error {
	for _, element := range array.Elems {
		if element.Index != nil {
			if err := s.subscript(element.Index); err != nil {
				return err
			}
		}
		if element.Value == nil {
			continue
		}
		if _, err := s.words([]*syntax.Word{element.Value}); err != nil {
			return err
		}
	}
	return nil
}

// assignsFor reads the assignments in front of a command. These assignments affect the environment of that command and
// no other.
func (s *shell) assignsFor(assigns []*syntax.Assign) ([]Word, error) {
	var env []Word
	for _, a := range assigns {
		if a.Append || a.Index != nil || a.Array != nil {
			return nil, unclear("this assignment in front of a command", "write NAME=value")
		}
		value, err := s.text(a.Value)
		if err != nil {
			return nil, err
		}
		env = append(env, Word(a.Name.Value+"=")+value)
	}
	return env, nil
}

// shellVariables are variables that change how bash itself reads or runs a script.
var shellVariables = map[string]bool{
	"PATH": true, "IFS": true, "ENV": true, "HOME": true, "CDPATH": true, "PWD": true, "OLDPWD": true, "PS4": true,
	"PROMPT_COMMAND": true, "SHELLOPTS": true, "GLOBIGNORE": true, "EXECIGNORE": true, "FIGNORE": true, "SHELL": true,
	"UID": true, "EUID": true, "PPID": true, "RANDOM": true, "SRANDOM": true, "SECONDS": true, "LINENO": true, "HISTCMD": true,
	"DIRSTACK": true, "GROUPS": true, "FUNCNAME": true, "EPOCHSECONDS": true, "EPOCHREALTIME": true, "PIPESTATUS": true, "_": true,
	"COMP_WORDBREAKS": true, "MAPFILE": true, "COPROC": true, "POSIXLY_CORRECT": true,
	"TMPDIR": true, "TIMEFORMAT": true, "FUNCNEST": true, "INPUTRC": true, "OPTIND": true,
}

// maySet reports whether a script is permitted to set a variable. It returns false for variables that bash uses. It
// also returns false for exported variables, because the programs that the script starts inherit them.
func (s *shell) maySet(name string) bool {
	return !shellVariables[name] && !strings.HasPrefix(name, "BASH") && !strings.HasPrefix(name, "LC_") && name != "LANG" &&
		(s.env.Exported == nil || !s.env.Exported(name))
}

func (s *shell) refuseToSet(name string) error {
	return unclear("a script that sets "+name, "choose another name for the variable")
}

// declare checks the commands local, declare and typeset. It refuses export, readonly and nameref. An exported variable
// would be in the environment of every later program.
func (s *shell) declare(c *syntax.DeclClause) error {
	switch c.Variant.Value {
	case "local", "declare", "typeset":
	default:
		return unclear(c.Variant.Value, "set variables without it")
	}
	if len(c.Args) == 0 {
		return unclear(c.Variant.Value+", which shows all variables,", "name the variable")
	}
	for _, a := range c.Args {
		if a.Name == nil { // an option, or a word that expands to an assignment
			if option := a.Value.Lit(); option == "-a" || option == "-A" {
				continue
			}
			return unclear("this option of "+c.Variant.Value, "leave it out")
		}
		if !s.maySet(a.Name.Value) {
			return s.refuseToSet(a.Name.Value)
		}
		if _, is := s.locals[a.Name.Value]; !is && s.locals != nil {
			s.locals[a.Name.Value] = s.vars[a.Name.Value]
		}
		if a.Naked {
			s.vars[a.Name.Value] = Word(anyText)
			delete(s.arrays, a.Name.Value)
			continue
		}
		if err := s.assigns([]*syntax.Assign{a}); err != nil {
			return err
		}
	}
	return nil
}

// test reads [[ … ]]. Both sides of a numeric comparison must be numbers, because bash evaluates both sides as
// arithmetic. -v and -R are refused, because bash evaluates a subscript in their operand.
func (s *shell) test(expression syntax.TestExpr) error {
	switch e := expression.(type) {
	case *syntax.BinaryTest:
		if comparing(e.Op) {
			return s.compare(e)
		}
		if err := s.test(e.X); err != nil {
			return err
		}
		return s.test(e.Y)
	case *syntax.UnaryTest:
		if e.Op == syntax.TsVarSet || e.Op == syntax.TsRefVar {
			return unclear("[[ "+e.Op.String()+" … ]]", `use [ -n "${NAME:-}" ]`)
		}
		return s.test(e.X)
	case *syntax.ParenTest:
		return s.test(e.X)
	case *syntax.Word:
		_, err := s.text(e)
		return err
	}
	return unclear("this test", "use [ … ]")
}

func comparing(op syntax.BinTestOperator) bool {
	return slices.Contains([]syntax.BinTestOperator{
		syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr,
	}, op)
}

// compare checks a numeric comparison.
func (s *shell) compare(e *syntax.BinaryTest) error {
	for _, side := range []syntax.TestExpr{e.X, e.Y} {
		word, ok := side.(*syntax.Word)
		if !ok {
			return unclear("this comparison", "use [ … ]")
		}
		if err := s.number(word); err != nil {
			return err
		}
	}
	return nil
}
