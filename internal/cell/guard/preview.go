package guard

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// maxScript limits the length of a script in bytes.
const maxScript = 64 << 10

// script judges a script that has not run.
func (j judge) script(text string) (found, error) {
	if j.limits().Anything {
		result, err := j.preview(text, j.place.dir(), syntax.LangBash)
		return allowedBy(fmt.Sprintf("tier %d: anything", j.tier)).and(result), err
	}
	return j.preview(text, j.place.dir(), syntax.LangBash)
}

// preview reads a script before it runs. It returns an error if a command of the script is certain to be denied, in
// whichever order and however often the commands run. What it does not know is judged when it happens.
func (j judge) preview(text, dir string, variant syntax.LangVariant) (found, error) {
	if len(text) > maxScript {
		return found{}, denied("a script of %d bytes is too long: split it into several calls", len(text))
	}
	if at := strings.IndexFunc(text, isControl); at >= 0 {
		return found{}, denied("the script has the control character %q in it: leave it out", text[at])
	}
	if j.depth > maxDepth {
		return found{}, denied("so many scripts within each other are not run: write the commands themselves")
	}
	file, err := syntax.NewParser(syntax.Variant(variant)).Parse(strings.NewReader(text), "")
	if err != nil {
		return found{}, denied("the script does not parse (%v): check its quotes and brackets", err)
	}
	r := &reader{judge: j, text: text, names: map[string]bool{}}
	r.judge.reading = true
	if err := r.survey(file); err != nil {
		return found{}, err
	}
	err = r.stmts(file.Stmts, &dir)
	return r.result, err
}

// isControl reports whether r is a control character other than a line break or tab.
func isControl(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }

// reader reads one script.
type reader struct {
	judge judge
	text  string
	// names holds the functions, aliases and variables of the script.
	names  map[string]bool
	result found
}

// survey collects the names that the script gives to functions and variables. It refuses what the agents' shell lacks,
// and the values of secret variables.
func (r *reader) survey(file *syntax.File) error {
	var refused error
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.FuncDecl:
			r.names[n.Name.Value] = true
		case *syntax.Assign:
			if n.Name != nil {
				r.names[n.Name.Value] = true
			}
		case *syntax.WordIter:
			r.names[n.Name.Value] = true
		case *syntax.ParamExp:
			if n.Param != nil && !r.names[n.Param.Value] && IsSecret(n.Param.Value) {
				refused = &DeniedError{Rule: "secrets", Reason: "the value of " + n.Param.Value +
					" is a secret: agents do not use it"}
			}
		}
		if refused == nil {
			refused = lacking(node)
		}
		return refused == nil
	})
	return refused
}

// lacking refuses what the agents' shell cannot run, with a spelling that it can.
func lacking(node syntax.Node) error {
	switch n := node.(type) {
	case *syntax.CoprocClause:
		return denied("a coprocess is not supported: use a pipe")
	case *syntax.Redirect:
		if n.N != nil && !slices.Contains([]string{"0", "1", "2"}, n.N.Value) {
			return denied("the descriptor %s is not supported: use 0, 1 and 2", n.N.Value)
		}
		target := n.Word.Lit()
		switch {
		case strings.HasPrefix(target, "/dev/tcp/") || strings.HasPrefix(target, "/dev/udp/"):
			return denied("%s is not supported: use nc -z HOST PORT, or curl", target)
		case n.Op == syntax.RdrInOut:
			return denied("the redirection <> is not supported: use < or >")
		case n.Op == syntax.DplOut && n.N == nil && strings.Trim(target, "0123456789-") != "": // >& FILE
		case (n.Op == syntax.DplOut || n.Op == syntax.DplIn) && !slices.Contains([]string{"", "1", "2", "-"}, target):
			return denied("the redirection %s%s is not supported: copy the descriptors 1 and 2, as in 2>&1", n.Op,
				target)
		}
	}
	return nil
}

// stmts reads statements that run one after another. The argument dir is the directory in which they start, and is
// changed to the one in which they end; "" is an unknown directory.
func (r *reader) stmts(stmts []*syntax.Stmt, dir *string) error {
	for _, stmt := range stmts {
		if err := r.stmt(stmt, dir); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) stmt(stmt *syntax.Stmt, dir *string) error {
	for _, redirect := range stmt.Redirs {
		if err := r.redirect(redirect, *dir); err != nil {
			return err
		}
	}
	switch c := stmt.Cmd.(type) {
	case nil:
		return nil
	case *syntax.CallExpr:
		return r.call(c, dir)
	case *syntax.Block:
		return r.stmts(c.Stmts, dir)
	case *syntax.BinaryCmd:
		if c.Op == syntax.AndStmt {
			return errors.Join(r.stmt(c.X, dir), r.stmt(c.Y, dir))
		}
	case *syntax.DeclClause:
		if c.Variant.Value == "export" || slices.ContainsFunc(c.Args, isOption) {
			r.undecided(c)
		}
	}
	return r.branches(stmt.Cmd, dir)
}

// isOption reports whether an argument of declare is an option, which can change what a variable means, or hides a
// variable.
func isOption(assign *syntax.Assign) bool {
	return assign.Name == nil || assign.Naked || strings.HasPrefix(assign.Name.Value, "-")
}

// branches reads a command that contains other commands, each of which may run or not. It reads them in the directory
// in which the command starts, unless the command changes the directory somewhere.
func (r *reader) branches(command syntax.Command, dir *string) error {
	start := *dir
	changes := false
	syntax.Walk(command, func(node syntax.Node) bool {
		if call, is := node.(*syntax.CallExpr); is && len(call.Args) > 0 {
			changes = changes || changesDir(call.Args[0].Lit()) || r.names[call.Args[0].Lit()]
		}
		return true
	})
	_, function := command.(*syntax.FuncDecl)
	if changes || function {
		start = ""
	}
	if _, subshell := command.(*syntax.Subshell); changes && !subshell && !function {
		*dir = ""
	}
	if subshell, is := command.(*syntax.Subshell); is {
		inside := *dir
		return r.stmts(subshell.Stmts, &inside)
	}
	return r.nested(command, start)
}

// nested reads the statements directly within a node.
func (r *reader) nested(node syntax.Node, dir string) error {
	var err error
	syntax.Walk(node, func(inner syntax.Node) bool {
		stmt, is := inner.(*syntax.Stmt)
		if !is || err != nil {
			return err == nil
		}
		inside := dir
		err = r.stmt(stmt, &inside)
		return false
	})
	return err
}

func changesDir(name string) bool {
	return slices.Contains([]string{"cd", "pushd", "popd", "eval", "source", ".", "command", "builtin"}, name)
}

// redirect judges the file of a redirection.
func (r *reader) redirect(redirect *syntax.Redirect, dir string) error {
	if err := r.nested(redirect, dir); err != nil {
		return err
	}
	write := slices.Contains([]syntax.RedirOperator{
		syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll,
	}, redirect.Op) || redirect.Op == syntax.DplOut && strings.Trim(redirect.Word.Lit(), "0123456789-") != ""
	if !write && redirect.Op != syntax.RdrIn {
		return nil
	}
	words, known := r.fields(redirect.Word, dir)
	if !known || len(words) != 1 || r.judge.remote && write {
		r.undecided(redirect)
		return nil
	}
	path, err := at(words[0], dir)
	if err == nil && write {
		err = r.judge.write(path)
	} else if err == nil {
		err = r.judge.read(path)
	}
	if errors.Is(err, errAtRun) {
		r.undecided(redirect)
		return nil
	}
	return withRule(err, "paths")
}

// undecided notes that a part of the script is judged when it runs.
func (r *reader) undecided(node syntax.Node) {
	const shown = 60
	text := strings.Join(strings.Fields(r.text[node.Pos().Offset():node.End().Offset()]), " ")
	if len([]rune(text)) > shown {
		text = string([]rune(text)[:shown]) + "…"
	}
	if r.result.atRun == "" {
		r.result.atRun = "`" + text + "`"
	}
}

// call reads a simple command.
func (r *reader) call(call *syntax.CallExpr, dir *string) error {
	if err := r.nested(call, *dir); err != nil { // its substitutions
		return err
	}
	if err := r.unmoved(call.Assigns); err != nil {
		return err
	}
	var words []string
	complete := true
	for _, arg := range call.Args {
		fields, known := r.fields(arg, *dir)
		if complete = complete && known; !known && len(words) == 0 {
			break
		}
		words = append(words, fields...)
	}
	switch {
	case len(words) == 0 && complete:
		return nil
	case len(words) == 0:
		r.undecided(call)
		return nil
	case words[0] == "cd":
		*dir = r.changed(words, complete, *dir)
		return nil
	case r.names[words[0]]: // a function
		*dir = ""
		r.undecided(call)
		return nil
	case words[0] == "eval" && complete && len(call.Assigns) == 0:
		*dir = ""
		return r.eval(strings.Join(words[1:], " "))
	case slices.Contains([]string{"command", "builtin", "exec"}, words[0]) && len(words) > 1:
		if strings.HasPrefix(words[1], "-") {
			r.undecided(call)
			return nil
		}
		inner := *call
		inner.Args = call.Args[1:]
		return r.call(&inner, dir)
	case slices.Contains(builtins, words[0]):
		return nil
	case slices.Contains(meaningful, words[0]):
		*dir = ""
		r.undecided(call)
		return nil
	}
	return r.program(call, words, complete, *dir)
}

func (r *reader) eval(script string) error {
	if r.judge.remote && !r.judge.limits().Anything {
		return denied("eval is not judged there: write the commands out")
	}
	result, err := r.judge.deeper().preview(script, "", syntax.LangBash)
	r.result = r.result.and(result)
	return err
}

// unmoved refuses assignments that decide where cd leads in a container or on another host.
func (r *reader) unmoved(assigns []*syntax.Assign) error {
	for _, assign := range assigns {
		if r.judge.remote && !r.judge.limits().Anything && slices.Contains([]string{"CDPATH", "HOME", "OLDPWD", "PWD"},
			assign.Name.Value) {
			return denied("%s decides where cd leads there: leave it out", assign.Name.Value)
		}
	}
	return nil
}

// program judges a program of the script.
func (r *reader) program(call *syntax.CallExpr, words []string, complete bool, dir string) error {
	command := Command{Words: words, Dir: dir}
	for _, assign := range call.Assigns {
		value, known := r.fields(assign.Value, dir)
		complete = complete && known
		command.Set = append(command.Set, assign.Name.Value+"="+strings.Join(value, " "))
	}
	if complete && (!r.judge.remote || !slices.ContainsFunc(words, hasPattern)) {
		result, err := r.judge.run(command)
		if !errors.Is(err, errAtRun) {
			r.result = r.result.and(result)
			return err
		}
	}
	r.undecided(call)
	return r.judge.partly(words, dir)
}

func hasPattern(word string) bool { return strings.ContainsAny(word, "*?[") }

// partly returns an error if a command is certain to be denied although some of its words are unknown. The unknown
// words are left out of words.
func (j judge) partly(words []string, dir string) error {
	name, err := j.program(words[0])
	if err != nil {
		return err
	}
	if err := j.never(name, Command{Words: words, Dir: dir}); err != nil {
		return err
	}
	if j.limits().Anything || j.policy.Runs(j.tier, name) {
		return nil
	}
	return j.notGranted(name)
}

// changed returns the directory after a cd; "" if it is not known whether that succeeds.
func (r *reader) changed(words []string, complete bool, dir string) string {
	if !complete || len(words) != 2 || strings.HasPrefix(words[1], "-") {
		return ""
	}
	path, err := at(words[1], dir)
	if err != nil || !r.judge.remote && !r.judge.files.Exists(path) {
		return ""
	}
	return path
}

// fields expands a word as far as the text of the script tells. If that is not certain, known is false.
func (r *reader) fields(word *syntax.Word, dir string) (fields []string, known bool) {
	if word == nil {
		return []string{""}, true
	}
	known = true
	syntax.Walk(word, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp, *syntax.ExtGlob:
			known = false
		case *syntax.ParamExp:
			known = known && r.isKnown(n)
		}
		return known
	})
	if !known {
		return nil, false
	}
	variables := map[string]string{"HOME": r.judge.place.Home, "TMPDIR": r.judge.place.Temp, "PWD": dir}
	environ := expand.FuncEnviron(func(name string) string { return variables[name] })
	fields, err := expand.Fields(&expand.Config{Env: environ}, word)
	if err != nil {
		return nil, false
	}
	if matches(word) && !r.judge.remote { // a pattern stands for files, which are known when it runs
		return fields, false
	}
	return fields, true
}

// isKnown reports whether the value of $NAME is known: the script does not set it, and the session does.
func (r *reader) isKnown(p *syntax.ParamExp) bool {
	name := p.Param.Value
	plain := p.Short || p.Exp == nil && p.Repl == nil && p.Slice == nil && p.Index == nil && !p.Excl && !p.Length &&
		p.Names == 0
	return plain && !r.names[name] && !r.judge.remote && (name == "HOME" || name == "TMPDIR")
}

// matches reports whether a word has a pattern outside of quotes.
func matches(word *syntax.Word) bool {
	return slices.ContainsFunc(word.Parts, func(part syntax.WordPart) bool {
		lit, is := part.(*syntax.Lit)
		return is && strings.ContainsAny(lit.Value, "*?[")
	})
}

// builtins lists the commands of the shell itself that start no program and open no file.
var builtins = []string{
	":", "true", "false", "echo", "printf", "pwd", "type", "exit", "return", "break", "continue", "wait", "times", "[",
	"test", "ulimit", "read", "set", "shift", "hash", "let", "umask", "mapfile", "readarray", "getopts", "jobs",
	"help", "dirs", "command", "builtin", "exec", "fg", "bg", "disown",
}

// meaningful lists the commands of the shell itself that change what later commands mean, or that act on processes.
var meaningful = []string{
	"source", ".", "eval", "alias", "unalias", "trap", "kill", "shopt", "pushd", "popd", "unset",
	"enable",
}
