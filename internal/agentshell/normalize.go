package agentshell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// normalize replaces parts of a script that the interpreter lacks by parts that it has.
func normalize(file *syntax.File) { normalizeIn(file) }

func normalizeIn(within syntax.Node) {
	syntax.Walk(within, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.CmdSubst:
			normalizeSubstitution(n)
		case *syntax.DblQuoted:
			normalizeQuotes(n)
		}
		if stmt, is := node.(*syntax.Stmt); is {
			for _, redirect := range stmt.Redirs {
				normalizeRedirect(redirect)
			}
			if timed, is := stmt.Cmd.(*syntax.TimeClause); is {
				normalizeTime(stmt, timed)
			}
			if stmt.Background {
				normalizeIn(normalizeJob(stmt))
				return false
			}
		}
		return true
	})
}

// normalized returns the text of a script with normalize applied. The interpreter reads the words of eval itself.
func normalized(script string) string {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return script // the interpreter says so
	}
	normalize(file)
	var text strings.Builder
	if err := syntax.NewPrinter().Print(&text, file); err != nil {
		return script
	}
	return text.String()
}

// normalizeSubstitution adds a command to $(<FILE), because the interpreter does not run the command around it if the file
// does not exist.
func normalizeSubstitution(substitution *syntax.CmdSubst) {
	if len(substitution.Stmts) != 1 {
		return
	}
	if stmt := substitution.Stmts[0]; stmt.Cmd == nil && len(stmt.Redirs) == 1 && stmt.Redirs[0].Op == syntax.RdrIn {
		stmt.Cmd = command(copyInput).Cmd
	}
}

// normalizeQuotes makes single quotes within "${NAME:-'TEXT'}" characters like others, as bash does.
func normalizeQuotes(quoted *syntax.DblQuoted) {
	for _, part := range quoted.Parts {
		expansion, is := part.(*syntax.ParamExp)
		if !is || expansion.Exp == nil || expansion.Exp.Word == nil || expansion.Exp.Op > syntax.AssignUnsetOrNull {
			continue
		}
		var parts []syntax.WordPart
		for _, part := range expansion.Exp.Word.Parts {
			single, is := part.(*syntax.SglQuoted)
			if !is || single.Dollar {
				parts = append(parts, part)
				continue
			}
			text, err := syntax.NewParser().Document(strings.NewReader(single.Value))
			if err != nil {
				return
			}
			parts = append(append(append(parts, &syntax.Lit{Value: "'"}), text.Parts...), &syntax.Lit{Value: "'"})
		}
		expansion.Exp.Word.Parts = parts
	}
}

// normalizeRedirect replaces >| by >, and >& FILE by &> FILE.
func normalizeRedirect(redirect *syntax.Redirect) {
	target := redirect.Word.Lit()
	switch {
	case redirect.Op == syntax.RdrClob:
		redirect.Op = syntax.RdrOut
	case redirect.Op == syntax.DplOut && redirect.N == nil && target != "-" && strings.Trim(target, "0123456789") != "":
		redirect.Op = syntax.RdrAll
	}
}

// normalizeTime replaces time by two commands of ours, because the interpreter prints times to the standard output.
func normalizeTime(stmt *syntax.Stmt, timed *syntax.TimeClause) {
	end := command(timeEnd)
	if timed.PosixFormat {
		end = command(timeEnd, "-p")
	}
	stmts := []*syntax.Stmt{command(timeStart)}
	if timed.Stmt != nil {
		stmts = append(stmts, timed.Stmt)
	}
	stmt.Cmd = &syntax.Block{Stmts: append(stmts, end)}
}

// normalizeJob replaces COMMAND & by three commands: number the job, note that it starts, and start it with its end
// marked. The interpreter does not tell one job from another. It returns COMMAND.
func normalizeJob(stmt *syntax.Stmt) *syntax.Stmt {
	inner := *stmt
	inner.Background = false
	number := assignment(jobVariable, &syntax.ArithmExp{X: &syntax.BinaryArithm{
		Op: syntax.Add, X: word(&syntax.ParamExp{Short: true, Param: &syntax.Lit{Value: jobVariable}}), Y: word(&syntax.Lit{Value: "1"}),
	}})
	inside := assignment(jobVariable+"_INSIDE", &syntax.Lit{Value: "1"})
	job := &syntax.Stmt{Background: true, Cmd: &syntax.Block{Stmts: []*syntax.Stmt{
		inside, {Cmd: &syntax.Subshell{Stmts: []*syntax.Stmt{&inner}}}, command(jobEnd),
	}}}
	*stmt = syntax.Stmt{Position: stmt.Position, Cmd: &syntax.Block{Stmts: []*syntax.Stmt{number, command(jobStart), job}}}
	return &inner
}

func assignment(name string, value syntax.WordPart) *syntax.Stmt {
	return &syntax.Stmt{Cmd: &syntax.CallExpr{Assigns: []*syntax.Assign{{Name: &syntax.Lit{Value: name}, Value: word(value)}}}}
}

func word(part syntax.WordPart) *syntax.Word { return &syntax.Word{Parts: []syntax.WordPart{part}} }

func command(words ...string) *syntax.Stmt {
	call := &syntax.CallExpr{}
	for _, text := range words {
		call.Args = append(call.Args, word(&syntax.Lit{Value: text}))
	}
	return &syntax.Stmt{Cmd: call}
}

// usesFIFOs reports whether a script substitutes processes: diff <(a) <(b).
func usesFIFOs(file *syntax.File) bool {
	return contains(file, func(node syntax.Node) bool {
		_, is := node.(*syntax.ProcSubst)
		return is
	})
}

// hasJobs reports whether a script can start background jobs.
func hasJobs(script string) bool {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	return err == nil && contains(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Stmt:
			return n.Background || n.Disown
		case *syntax.CallExpr: // a script in a word
			return len(n.Args) > 0 && slices.Contains([]string{"eval", "source", ".", "trap", "command", "builtin"}, n.Args[0].Lit())
		}
		return false
	})
}

func contains(file syntax.Node, wanted func(syntax.Node) bool) (found bool) {
	syntax.Walk(file, func(node syntax.Node) bool {
		found = found || node != nil && wanted(node)
		return !found
	})
	return found
}
