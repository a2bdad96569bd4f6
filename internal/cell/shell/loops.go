package shell

import (
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

// normalizeLoops changes what follows break and continue. The interpreter runs the rest of the blocks and conditions
// around them. So each loop gets a variable that is set when it is left, and what follows runs only if the variable is
// empty.
func normalizeLoops(file *syntax.File) {
	done := map[*syntax.Stmt]bool{}
	syntax.Walk(file, func(node syntax.Node) bool {
		if stmt, is := node.(*syntax.Stmt); is && !done[stmt] && isLoop(stmt.Cmd) {
			(&loops{done: done}).stmt(stmt)
		}
		return true
	})
}

func isLoop(command syntax.Command) bool {
	switch command.(type) {
	case *syntax.WhileClause, *syntax.ForClause:
		return true
	}
	return false
}

// loops holds the variables of the loops around a statement, innermost last.
type loops struct {
	around []string
	done   map[*syntax.Stmt]bool
}

// stmt changes a statement, and returns how many loops it can leave.
func (l *loops) stmt(stmt *syntax.Stmt) (leaves int) {
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		return l.call(stmt, c)
	case *syntax.BinaryCmd:
		if c.Op != syntax.AndStmt && c.Op != syntax.OrStmt { // pipes run in subshells
			return 0
		}
		if leaves = l.stmt(c.X); leaves > 0 {
			rest := *c.Y
			defer func() { c.Y = l.unlessLeft([]*syntax.Stmt{&rest}) }()
			return max(leaves, l.stmt(&rest))
		}
		return l.stmt(c.Y)
	case *syntax.Block:
		c.Stmts, leaves = l.list(c.Stmts)
	case *syntax.IfClause:
		return l.condition(c)
	case *syntax.CaseClause:
		for _, item := range c.Items {
			var found int
			item.Stmts, found = l.list(item.Stmts)
			leaves = max(leaves, found)
		}
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return l.stmt(c.Stmt)
		}
	case *syntax.ForClause:
		l.done[stmt] = true
		c.Do, leaves = l.body(c.Do)
	case *syntax.WhileClause:
		l.done[stmt] = true
		c.Do, leaves = l.body(c.Do)
	}
	return leaves
}

// condition changes a condition and its branches. If the loop was left in the condition, no branch runs.
func (l *loops) condition(clause *syntax.IfClause) (leaves int) {
	if clause == nil {
		return 0
	}
	var then int
	clause.Cond, leaves = l.list(clause.Cond)
	clause.Then, then = l.list(clause.Then)
	otherwise := l.condition(clause.Else)
	if leaves > 0 {
		clause.Then = []*syntax.Stmt{l.unlessLeft(clause.Then)}
		if rest := clause.Else; rest != nil {
			all := rest.Then
			if len(rest.Cond) > 0 { // elif
				all = []*syntax.Stmt{{Cmd: rest}}
			}
			clause.Else = &syntax.IfClause{Then: []*syntax.Stmt{l.unlessLeft(all)}}
		}
	}
	return max(leaves, then, otherwise)
}

// list changes statements that run one after another.
func (l *loops) list(stmts []*syntax.Stmt) (changed []*syntax.Stmt, leaves int) {
	for i, stmt := range stmts {
		if leaves = l.stmt(stmt); leaves == 0 {
			continue
		}
		if rest := stmts[i+1:]; len(rest) > 0 {
			inner, found := l.list(rest)
			return append(stmts[:i+1:i+1], l.unlessLeft(inner)), max(leaves, found)
		}
	}
	return stmts, leaves
}

// body changes the statements of a loop. The interpreter itself does not run those that follow a break.
func (l *loops) body(stmts []*syntax.Stmt) (changed []*syntax.Stmt, leaves int) {
	left := newVariable("LEFT")
	inner := &loops{around: append(slices.Clip(l.around), left), done: l.done}
	for _, stmt := range stmts {
		leaves = max(leaves, inner.stmt(stmt))
	}
	if leaves == 0 {
		return stmts, 0
	}
	return append([]*syntax.Stmt{assignment(left, &syntax.Lit{Value: ""})}, stmts...), leaves - 1
}

// call changes break and continue, and returns how many loops they leave.
func (l *loops) call(stmt *syntax.Stmt, call *syntax.CallExpr) (leaves int) {
	if len(call.Args) == 0 || len(l.around) == 0 {
		return 0
	}
	if name := call.Args[0].Lit(); name != "break" && name != "continue" {
		return 0
	}
	leaves = 1
	if len(call.Args) > 1 {
		if levels, err := strconv.Atoi(call.Args[1].Lit()); err == nil {
			leaves = min(max(levels, 1), len(l.around))
		}
	}
	var stmts []*syntax.Stmt
	for _, left := range l.around[len(l.around)-leaves:] {
		stmts = append(stmts, assignment(left, &syntax.Lit{Value: "1"}))
	}
	stmt.Cmd = &syntax.Block{Stmts: append(stmts, &syntax.Stmt{Cmd: call})}
	return leaves
}

// unlessLeft runs statements unless the innermost loop was left.
func (l *loops) unlessLeft(stmts []*syntax.Stmt) *syntax.Stmt {
	empty := &syntax.TestClause{X: &syntax.UnaryTest{Op: syntax.TsEmpStr, X: word(variable(l.around[len(l.around)-1]))}}
	return &syntax.Stmt{Cmd: &syntax.IfClause{Cond: []*syntax.Stmt{{Cmd: empty}}, Then: stmts}}
}
