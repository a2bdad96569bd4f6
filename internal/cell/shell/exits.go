package shell

import (
	"fmt"
	"regexp"
	"slices"
	"sync/atomic"

	"mvdan.cc/sh/v3/syntax"
)

// errexit matches the words of set that switch on that a failure ends the script.
var errexit = regexp.MustCompile(`^-\w*e|^errexit$`)

// endsAtFailure reports whether a script can switch on that a failure ends it.
func endsAtFailure(file *syntax.File, options []string) bool {
	return slices.ContainsFunc(options, errexit.MatchString) || contains(file, func(node syntax.Node) bool {
		call, is := node.(*syntax.CallExpr)
		return is && len(call.Args) > 1 && call.Args[0].Lit() == "set" &&
			slices.ContainsFunc(call.Args[1:], func(word *syntax.Word) bool { return errexit.MatchString(word.Lit()) })
	})
}

// exits changes the exit codes of compound commands, because the interpreter differs from bash:
//
//   - It returns 0 from while and until, and leaves for ((...)) at the first failure. They get the exit code of the
//     last command in them.
//   - With set -e it exits because of the exit code of a compound command. bash exits because of a command in it only.
//     So this exit code becomes 0, unless another command uses it.
//
// In conditions set -e has no effect, in the interpreter neither.
type exits struct{ errexit bool }

// list changes statements that run one after another. The argument isUsed says that a command uses the exit code of the
// last one, as at the end of a function.
func (e exits) list(stmts []*syntax.Stmt, isUsed bool) {
	for i, stmt := range stmts {
		e.stmt(stmt, isUsed && i == len(stmts)-1)
	}
}

// stmt changes a statement. Without set -e, the next command can use any exit code.
func (e exits) stmt(stmt *syntax.Stmt, isUsed bool) {
	isUsed = isUsed || !e.errexit || stmt.Negated || stmt.Background
	switch c := stmt.Cmd.(type) {
	case *syntax.Block:
		c.Stmts = e.body(c.Stmts, isUsed)
	case *syntax.IfClause:
		for clause := c; clause != nil; clause = clause.Else {
			exits{}.list(clause.Cond, true)
			clause.Then = e.body(clause.Then, isUsed)
		}
	case *syntax.CaseClause:
		for _, item := range c.Items {
			item.Stmts = e.body(item.Stmts, isUsed)
		}
	case *syntax.WhileClause:
		exits{}.list(c.Cond, true)
		e.list(c.Do, false)
		if isUsed {
			c.Do = keepCode(stmt, c.Do)
		}
	case *syntax.ForClause:
		e.list(c.Do, false)
		if _, counts := c.Loop.(*syntax.CStyleLoop); counts && isUsed {
			c.Do = keepCode(stmt, c.Do)
		} else if !isUsed {
			c.Do = append(c.Do, command(setStatus, "0"))
		}
	case *syntax.BinaryCmd:
		if c.Op == syntax.AndStmt || c.Op == syntax.OrStmt {
			exits{}.stmt(c.X, true)
			e.stmt(c.Y, isUsed)
		} else {
			e.stmt(c.X, true)
			e.stmt(c.Y, true)
		}
	case *syntax.Subshell:
		e.list(c.Stmts, true)
	case *syntax.FuncDecl:
		e.stmt(c.Body, true)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			e.stmt(c.Stmt, isUsed)
		}
	}
}

// body changes the statements of a compound command.
func (e exits) body(stmts []*syntax.Stmt, isUsed bool) []*syntax.Stmt {
	e.list(stmts, isUsed)
	if isUsed || len(stmts) == 0 {
		return stmts
	}
	return append(stmts, command(setStatus, "0"))
}

// keepCode gives a loop the exit code of the last command in it. It returns the changed statements of the loop.
func keepCode(stmt *syntax.Stmt, body []*syntax.Stmt) []*syntax.Stmt {
	code := newVariable("CODE")
	zero := func() *syntax.Stmt { return assignment(code, &syntax.Lit{Value: "0"}) }
	loop := &syntax.Stmt{Position: stmt.Position, Cmd: stmt.Cmd}
	stmt.Cmd = &syntax.Block{Stmts: []*syntax.Stmt{zero(), loop, exitWith(code)}}
	return append(append([]*syntax.Stmt{zero()}, body...), assignment(code, variable("?")))
}

// exitWith sets the exit code to the value of a variable.
func exitWith(code string) *syntax.Stmt {
	return &syntax.Stmt{Cmd: &syntax.CallExpr{Args: []*syntax.Word{
		word(&syntax.Lit{Value: setStatus}),
		word(variable(code)),
	}}}
}

// lastVariable is the number of the latest variable.
var lastVariable atomic.Int64

// newVariable returns the name of a new variable. Scripts in words (eval) share the variables of the script around
// them, so the names are unique.
func newVariable(kind string) string {
	return fmt.Sprintf("CLAUDEOPS_%s_%d", kind, lastVariable.Add(1))
}

func variable(name string) *syntax.ParamExp {
	return &syntax.ParamExp{Short: true, Param: &syntax.Lit{Value: name}}
}
