package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// loop reads the body of a loop once for all rounds. While it reads, the variables that the body sets are unknown. If
// the body changes the directory, loop reads the body again with an unknown directory.
func (s *shell) loop(body []*syntax.Stmt) error {
	s.forget(body)
	round := s.fork()
	round.repeated = true
	if err := round.stmts(body); err != nil {
		return err
	}
	if round.dir != s.dir { // the next round starts in another directory
		round.dir, s.dir = Word(anyText), Word(anyText)
		again := s.fork()
		again.repeated = true
		if err := again.stmts(body); err != nil {
			return err
		}
	}
	s.join(round)
	return nil
}

func (s *shell) forClause(c *syntax.ForClause) error {
	if c.Select {
		return unclear("select", "use for")
	}
	switch loop := c.Loop.(type) {
	case *syntax.CStyleLoop:
		if err := s.arithmetic(loop.Init); err != nil {
			return err
		}
		s.forget(c.Do) // the condition is also evaluated after the first round
		for _, part := range []syntax.ArithmExpr{loop.Cond, loop.Post} {
			if err := s.arithmetic(part); err != nil {
				return err
			}
		}
		return s.loop(c.Do)
	case *syntax.WordIter:
		return s.forEach(loop, c.Do)
	}
	return unclear("this kind of loop", "")
}

// forEach reads the body once for each word of the list.
func (s *shell) forEach(iter *syntax.WordIter, body []*syntax.Stmt) error {
	name := iter.Name.Value
	if name != "_" && !s.maySet(name) { // bash itself sets $_
		return s.refuseToSet(name)
	}
	items, err := s.words(iter.Items)
	if err != nil {
		return err
	}
	if !iter.InPos.IsValid() {
		items = s.positional()
	}
	s.forget(body)
	var rounds []*shell
	for _, item := range items {
		round := s.fork()
		if item.Many() {
			round.repeated = true
			item = item.one()
		}
		if round.vars[name] = item; name == "_" {
			round.vars[name] = Word(anyText)
		}
		if err := round.stmts(body); err != nil {
			return err
		}
		rounds = append(rounds, round)
	}
	s.vars[name] = Word(anyText)
	s.join(rounds...)
	for _, round := range rounds {
		if round.dir != rounds[0].dir || s.dir != round.dir {
			return unclear("a loop whose rounds change the directory", "use a subshell, ( cd DIR && … ), or absolute paths")
		}
	}
	return nil
}

func (s *shell) positional() []Word {
	if s.args == nil {
		return []Word{Word(anyWords)}
	}
	return s.args
}

// setters lists builtins that can set variables or positional parameters, depending on their arguments.
var setters = []string{"read", "unset", "set", "command", "builtin"}

// changes collects the variables that statements can set.
type changes struct {
	shell *shell
	// numbers holds variables that the statements set only to integers. texts holds variables that the statements can
	// set to any text. If the statements can set every variable, everything is true.
	numbers, texts map[string]bool
	everything     bool
	// arguments is set if the positional parameters can change.
	arguments bool
	// functions holds the functions whose bodies were visited.
	functions map[string]bool
}

// forget marks as unknown all variables that the body can set, directly or in functions.
func (s *shell) forget(body []*syntax.Stmt) {
	c := &changes{shell: s, numbers: map[string]bool{}, texts: map[string]bool{}, functions: map[string]bool{}}
	for _, stmt := range body {
		syntax.Walk(stmt, c.see)
	}
	if c.everything {
		for name := range s.vars {
			c.texts[name] = true
		}
	}
	if c.arguments {
		s.args = nil
	}
	for name := range c.numbers {
		if !c.texts[name] {
			s.vars[name] = union(s.vars[name], "0")
		}
	}
	for name := range c.texts {
		s.vars[name] = Word(anyText)
		delete(s.arrays, name)
	}
}

// see records the variables that a node of the syntax tree can set. forget passes this function to syntax.Walk.
func (c *changes) see(node syntax.Node) bool {
	switch n := node.(type) {
	case *syntax.Assign:
		c.assign(n)
	case *syntax.WordIter:
		c.texts[n.Name.Value] = true
	case *syntax.FuncDecl:
		if c.shell.funcs[n.Name.Value] != n.Body { // in a later round a call can mean another function
			c.shell.funcs[n.Name.Value] = nil
		}
	case *syntax.ParamExp: // ${x:=y}
		if n.Param != nil && n.Exp != nil {
			c.texts[n.Param.Value] = true
		}
	case *syntax.BinaryArithm:
		if assigning(n.Op) {
			c.number(n.X)
		}
	case *syntax.UnaryArithm:
		if n.Op == syntax.Inc || n.Op == syntax.Dec {
			c.number(n.X)
		}
	case *syntax.CallExpr:
		c.call(n)
	}
	return true
}

func (c *changes) assign(a *syntax.Assign) {
	switch {
	case a.Name == nil:
	case assignsNumber(a):
		c.numbers[a.Name.Value] = true
	default:
		c.texts[a.Name.Value] = true
	}
}

// number records a variable that arithmetic sets.
func (c *changes) number(expression syntax.ArithmExpr) {
	if word, is := expression.(*syntax.Word); is && isName(word.Lit()) {
		c.numbers[word.Lit()] = true
	}
}

// call records the variables that a command can set. It records every variable that an argument names, because read and
// unset change the variables in their arguments. If the command calls a function, call visits the function's body, too.
func (c *changes) call(n *syntax.CallExpr) {
	var words []string
	fixed := true
	for _, arg := range n.Args {
		word, is := roughly(arg).Known()
		fixed = fixed && is
		words = append(words, word)
		if isName(word) {
			if _, set := c.shell.vars[word]; set {
				c.texts[word] = true
			}
		}
	}
	if len(words) == 0 {
		return
	}
	switch name := words[0]; {
	case strings.ContainsAny(name, holes), name == "eval", !fixed && slices.Contains(setters, name):
		c.everything, c.arguments = true, true
	case name == "set" || name == "shift":
		c.arguments = true
	case c.shell.funcs[name] != nil && !c.functions[name]:
		c.functions[name] = true
		syntax.Walk(c.shell.funcs[name], c.see)
	}
}

// assigning reports whether an arithmetic operator sets a variable.
func assigning(op syntax.BinAritOperator) bool {
	return slices.Contains([]syntax.BinAritOperator{
		syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn,
		syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn,
	}, op)
}

// assignsNumber reports whether the value of an assignment is $((…)) or digits.
func assignsNumber(a *syntax.Assign) bool {
	if a.Value == nil || a.Append || a.Index != nil || a.Array != nil || len(a.Value.Parts) != 1 {
		return false
	}
	if _, is := a.Value.Parts[0].(*syntax.ArithmExp); is {
		return true
	}
	return Word(a.Value.Lit()).isNumber()
}
