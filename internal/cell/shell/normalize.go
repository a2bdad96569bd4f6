package shell

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// normalize replaces parts of a script that the interpreter lacks by parts that it has. The argument errexit says that
// a failure may end the script.
func normalize(file *syntax.File, errexit bool) {
	normalizeLoops(file)
	exits{errexit}.list(file.Stmts, true)
	normalizeIn(file, errexit)
}

func normalizeIn(within syntax.Node, errexit bool) {
	syntax.Walk(within, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.CmdSubst:
			normalizeSubstitution(n)
			exits{}.list(n.Stmts, true)
			n.Stmts = awaitJobs(n.Stmts)
			if errexit && len(n.Stmts) > 0 { // as bash does
				n.Stmts = append([]*syntax.Stmt{command("set", "+e")}, n.Stmts...)
			}
		case *syntax.ProcSubst:
			exits{}.list(n.Stmts, true)
		case *syntax.BinaryCmd:
			normalizePipe(n)
		case *syntax.DblQuoted:
			normalizeQuotes(n.Parts)
		case *syntax.Assign:
			normalizeBackslashes(n.Value)
		}
		if stmt, is := node.(*syntax.Stmt); is {
			for _, redirect := range stmt.Redirs {
				normalizeRedirect(redirect)
			}
			if stmt.Background {
				normalizeIn(normalizeJob(stmt), errexit)
				return false
			}
			normalizeCommand(stmt)
		}
		return true
	})
}

// normalizeCommand changes the command of a statement.
func normalizeCommand(stmt *syntax.Stmt) {
	switch c := stmt.Cmd.(type) {
	case *syntax.TimeClause:
		normalizeTime(stmt, c)
	case *syntax.CallExpr:
		normalizeOrder(stmt, c)
	}
}

// normalized returns the text of a script with normalize applied. The interpreter reads the words of eval itself.
func normalized(script string) string {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return script // the interpreter says so
	}
	if reason := unsupported(file, script); reason != "" {
		return quote([]string{setStatus, "2", reason})
	}
	normalize(file, true)
	var text strings.Builder
	if err := syntax.NewPrinter().Print(&text, file); err != nil {
		return script
	}
	return text.String()
}

// normalizeSubstitution adds a command to $(<FILE), because the interpreter does not run the command around it if the
// file does not exist.
func normalizeSubstitution(substitution *syntax.CmdSubst) {
	if len(substitution.Stmts) != 1 {
		return
	}
	if stmt := substitution.Stmts[0]; stmt.Cmd == nil && len(stmt.Redirs) == 1 && stmt.Redirs[0].Op == syntax.RdrIn {
		stmt.Cmd = command(copyInput).Cmd
	}
}

// awaitJobs adds a wait to statements whose output is read, because the reader in bash waits for the jobs among them.
func awaitJobs(stmts []*syntax.Stmt) []*syntax.Stmt {
	starts := slices.ContainsFunc(stmts, func(stmt *syntax.Stmt) bool {
		return contains(stmt, func(node syntax.Node) bool {
			one, is := node.(*syntax.Stmt)
			return is &&
				one.Background
		})
	})
	if !starts {
		return stmts
	}
	const code = "CLAUDEOPS_CODE"
	return append(stmts, assignment(code, variable("?")), command("wait"), exitWith(code))
}

// normalizePipe puts the end of a pipe into a subshell, where bash runs it. The interpreter runs it in the shell
// itself.
func normalizePipe(pipe *syntax.BinaryCmd) {
	if pipe.Op == syntax.Pipe || pipe.Op == syntax.PipeAll {
		if before := []*syntax.Stmt{pipe.X}; len(awaitJobs(before)) > 1 {
			pipe.X = &syntax.Stmt{Position: pipe.X.Position, Cmd: &syntax.Block{Stmts: awaitJobs(before)}}
		}
		pipe.Y = &syntax.Stmt{Position: pipe.Y.Position, Cmd: &syntax.Subshell{Stmts: []*syntax.Stmt{pipe.Y}}}
	}
}

// orderedWords is the variable with the words of a command.
const orderedWords = "CLAUDEOPS_WORDS"

// normalizeOrder has the words of a command expanded before its redirections, as in: echo "$(sort FILE)" > FILE,
// and: cat * > FILE.
func normalizeOrder(stmt *syntax.Stmt, call *syntax.CallExpr) {
	depends := slices.ContainsFunc(call.Args, func(word *syntax.Word) bool {
		return hasPattern(word) || contains(word, func(node syntax.Node) bool {
			_,
				runs := node.(*syntax.CmdSubst)
			return runs
		})
	})
	if len(stmt.Redirs) == 0 || !depends {
		return
	}
	words := &syntax.ArrayExpr{}
	for _, word := range call.Args {
		words.Elems = append(words.Elems, &syntax.ArrayElem{Value: word})
	}
	expand := &syntax.CallExpr{Assigns: []*syntax.Assign{{Name: &syntax.Lit{Value: orderedWords}, Array: words}}}
	all := &syntax.ParamExp{Param: &syntax.Lit{Value: orderedWords}, Index: word(&syntax.Lit{Value: "@"})}
	call.Args = []*syntax.Word{word(&syntax.DblQuoted{Parts: []syntax.WordPart{all}})}
	run := *stmt
	run.Negated = false
	stmt.Redirs, stmt.Cmd = nil, &syntax.Block{Stmts: []*syntax.Stmt{
		either(&syntax.Stmt{Cmd: expand}, command(setStatus, "0")), // with set -e, too
		&run,
	}}
}

// either returns X || Y.
func either(x, y *syntax.Stmt) *syntax.Stmt {
	return &syntax.Stmt{Cmd: &syntax.BinaryCmd{Op: syntax.OrStmt, X: x, Y: y}}
}

// hasPattern reports whether a word stands for the names of files.
func hasPattern(word *syntax.Word) bool {
	return slices.ContainsFunc(word.Parts, func(part syntax.WordPart) bool {
		lit, is := part.(*syntax.Lit)
		return is && strings.ContainsAny(lit.Value, "*?[")
	})
}

// normalizeQuotes makes single quotes within "${NAME:-'TEXT'}" characters like others, as bash does.
func normalizeQuotes(quoted []syntax.WordPart) {
	for _, part := range quoted {
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

// normalizeBackslashes replaces \CHARACTER by 'CHARACTER'. Outside of arguments, the interpreter keeps some
// backslashes.
func normalizeBackslashes(word *syntax.Word) {
	if word == nil {
		return
	}
	var parts []syntax.WordPart
	for _, part := range word.Parts {
		lit, is := part.(*syntax.Lit)
		if !is {
			parts = append(parts, part)
			continue
		}
		rest := lit.Value
		for {
			before, after, found := strings.Cut(rest, `\`)
			if !found || after == "" {
				break
			}
			_, size := utf8.DecodeRuneInString(after)
			parts = append(parts, &syntax.Lit{Value: before}, &syntax.SglQuoted{Value: after[:size]})
			rest = after[size:]
		}
		parts = append(parts, &syntax.Lit{Value: rest})
	}
	word.Parts = parts
}

// normalizeRedirect replaces >| by >, and >& FILE by &> FILE.
func normalizeRedirect(redirect *syntax.Redirect) {
	if redirect.Hdoc != nil {
		normalizeQuotes(redirect.Hdoc.Parts)
	} else {
		normalizeBackslashes(redirect.Word)
	}
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
		if call, is := timed.Stmt.Cmd.(*syntax.CallExpr); is && len(call.Args) > 1 && call.Args[0].Lit() == "--" {
			call.Args = call.Args[1:] // it ends the options of time
		}
		stmts = append(stmts, timed.Stmt)
	}
	stmt.Cmd = &syntax.Block{Stmts: append(stmts, end)}
}

// normalizeJob replaces COMMAND & by three commands: number the job, note that it starts, and start it with its end
// marked. The interpreter does not tell one job from another. It returns COMMAND.
func normalizeJob(stmt *syntax.Stmt) *syntax.Stmt {
	inner := *stmt
	inner.Background = false
	latest := &syntax.ParamExp{ // with set -u, a variable that is not set is an error
		Param: &syntax.Lit{Value: jobVariable},
		Exp:   &syntax.Expansion{Op: syntax.DefaultUnset, Word: word(&syntax.Lit{Value: "0"})},
	}
	number := assignment(jobVariable, &syntax.ArithmExp{X: &syntax.BinaryArithm{
		Op: syntax.Add, X: word(latest), Y: word(&syntax.Lit{Value: "1"}),
	}})
	inside := assignment(jobVariable+"_INSIDE", &syntax.Lit{Value: "1"})
	job := &syntax.Stmt{Background: true, Cmd: &syntax.Block{Stmts: []*syntax.Stmt{
		inside, {Cmd: &syntax.Subshell{Stmts: []*syntax.Stmt{&inner}}}, command(jobEnd),
	}}}
	*stmt = syntax.Stmt{
		Position: stmt.Position,
		Cmd:      &syntax.Block{Stmts: []*syntax.Stmt{number, command(jobStart), job}},
	}
	return &inner
}

func assignment(name string, value syntax.WordPart) *syntax.Stmt {
	return &syntax.Stmt{Cmd: &syntax.CallExpr{Assigns: []*syntax.Assign{{
		Name:  &syntax.Lit{Value: name},
		Value: word(value),
	}}}}
}

func word(part syntax.WordPart) *syntax.Word { return &syntax.Word{Parts: []syntax.WordPart{part}} }

func command(words ...string) *syntax.Stmt {
	call := &syntax.CallExpr{}
	for _, text := range words {
		call.Args = append(call.Args, word(&syntax.Lit{Value: text}))
	}
	return &syntax.Stmt{Cmd: call}
}

// hasJobs reports whether a script can start background jobs.
func hasJobs(script string) bool {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	return err == nil && contains(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Stmt:
			return n.Background || n.Disown
		case *syntax.CallExpr: // a script in a word
			return len(n.Args) > 0 && slices.Contains([]string{"eval", "source", ".", "trap", "command", "builtin"},
				n.Args[0].Lit())
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
