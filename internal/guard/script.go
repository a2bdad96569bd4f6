package guard

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Command is a simple command that a script can run: a program with its arguments.
type Command struct {
	// Words holds the program and its arguments. There is at least one word.
	Words []Word
	// Env lists the variables that are set for this command only, as NAME=value.
	Env []Word
	// Dir is the working directory of the command.
	Dir Word
	// Input is the text of a here-document on the standard input; empty if there is none.
	Input Word
	// Stdin describes what a pipe supplies on the standard input.
	Stdin Output
	// Repeated is true within a loop whose number of rounds is unknown.
	Repeated bool
}

// Access describes a file that the shell opens for a redirection, or a directory that the shell enters.
type Access struct {
	Path  Word
	Write bool
	// Enter means that the shell changes into the directory Path, and opens no file.
	Enter bool
	// Dir is the working directory of the shell. A relative Path starts there.
	Dir Word
}

// Output describes what a command prints.
type Output string

// The outputs.
const (
	Anything Output = ""
	// Items are names, one per line. A name has letters, digits and . _ - : / @, and begins with a letter or digit.
	Items Output = "items"
	// Number is an integer.
	Number Output = "number"
	// Lines are lines selected from the standard input.
	Lines Output = "lines"
	// Nothing is no output, or an empty line.
	Nothing Output = "nothing"
)

// Visitor receives the commands and file accesses of a script. If a method returns an error, Walk stops and returns the
// error.
type Visitor interface {
	// Run returns a description of what the command prints.
	Run(command Command) (Output, error)
	Open(access Access) error
}

// UnclearError reports a part of a script whose effect cannot be determined before the script runs.
type UnclearError struct {
	// What names the part of the script.
	What string
	// Instead suggests a spelling whose effect can be determined; empty if there is none.
	Instead string
}

// Error implements error.
func (e *UnclearError) Error() string {
	if e.Instead == "" {
		return "it cannot be told what " + e.What + " would do"
	}
	return fmt.Sprintf("it cannot be told what %s would do; %s", e.What, e.Instead)
}

func unclear(what, instead string) error { return &UnclearError{what, instead} }

const (
	// maxScript limits the length of a script in bytes.
	maxScript = 64 << 10
	// maxSteps limits the number of statements that the guard reads. It counts a statement again for each round of a
	// loop and for each call of a function.
	maxSteps = 5_000
	// maxDepth limits the nesting of functions, of scripts within scripts and of quotations.
	maxDepth = 20
)

// Environment is the environment in which a script starts.
type Environment struct {
	// Dir is the working directory.
	Dir string
	// Variables maps variables of the environment to their known values. The environment can have further variables.
	Variables map[string]string
	// Exported reports whether a variable is in the environment of the agent. If a script sets such a variable, the
	// programs that the script starts get the new value.
	Exported func(name string) bool
	// Program reports whether name is the name of a program. A function must not have such a name.
	Program func(name string) bool
	// Hopeful assumes that every cd succeeds.
	Hopeful bool
	// Matches reports whether a pattern matches a file. If Matches is nil, every pattern is assumed to match.
	Matches func(pattern string) bool
	// Secret reports whether the value of a variable of the environment must not be used.
	Secret func(name string) bool
}

// Walk reads a bash script. It passes every command that the script can run, and every file that the script's shell can
// open, to the visitor. It follows lists, pipes, loops, branches, functions, substitutions and here-documents. It reads
// both sides of a branch. It returns an *UnclearError for a part whose effect cannot be determined, or the visitor's
// error.
func Walk(script string, env Environment, visitor Visitor) error {
	w := &walk{visitor: visitor, env: env}
	s := &shell{
		walk: w, vars: map[string]Word{}, arrays: map[string][]Word{}, funcs: map[string]*syntax.Stmt{}, dir: Word(env.Dir),
		top: true, stdin: Nothing,
	}
	return s.script(script)
}

// script reads a script in this shell.
func (s *shell) script(text string) error { return s.scriptIn(text, syntax.LangBash) }

// scriptIn reads a script in the language of the given shell.
func (s *shell) scriptIn(text string, variant syntax.LangVariant) error {
	if len(text) > maxScript {
		return unclear(fmt.Sprintf("a script of %d bytes", len(text)), "split it into several calls")
	}
	if at := strings.IndexFunc(text, isControl); at >= 0 {
		return unclear(fmt.Sprintf("a script with the control character %q", text[at]), "leave it out")
	}
	if strings.Contains(text, "\\\n") && strings.Contains(strings.ReplaceAll(text, "<<<", ""), "<<") {
		return unclear("a here-document beside a continued line", "write the line in one")
	}
	file, err := syntax.NewParser(syntax.Variant(variant)).Parse(strings.NewReader(text), "")
	if err != nil {
		return unclear("a script that does not parse ("+err.Error()+")", "check its quotes and brackets")
	}
	return s.nested(func() error { return s.stmts(file.Stmts) })
}

// isControl reports whether r is a control character other than a line break or tab. Terminals and shells treat these
// characters specially.
func isControl(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }

func (s *shell) stmts(stmts []*syntax.Stmt) error {
	for _, stmt := range stmts {
		dir := s.dir
		if err := s.stmt(stmt); err != nil {
			return err
		}
		if s.dir != dir && !s.strict && !s.env.Hopeful && !endsOtherwise(stmt) { // the cd possibly failed
			s.dir = Word(anyText)
		}
	}
	return nil
}

// endsOtherwise reports whether a statement has the form COMMAND || exit.
func endsOtherwise(stmt *syntax.Stmt) bool {
	or, is := stmt.Cmd.(*syntax.BinaryCmd)
	if !is || or.Op != syntax.OrStmt {
		return false
	}
	if _, plain := or.X.Cmd.(*syntax.CallExpr); !plain {
		return false
	}
	call, is := or.Y.Cmd.(*syntax.CallExpr)
	return is && len(call.Args) > 0 && call.Args[0].Lit() == "exit"
}

func (s *shell) stmt(stmt *syntax.Stmt) error {
	s.steps++
	if s.steps > maxSteps {
		return unclear("a script with so many steps", "make it shorter")
	}
	if stmt.Coprocess || stmt.Disown {
		return unclear("a coprocess", "use a pipe")
	}
	in := s
	if stmt.Background {
		in = s.fork()
	}
	outer := in.input
	defer func() { in.input = outer }()
	if len(stmt.Redirs) > 0 {
		stdin := in.stdin
		defer func() { in.stdin = stdin }()
	}
	for _, redirect := range stmt.Redirs {
		if redirect.Op != syntax.RdrOut && redirect.Op != syntax.DplOut && redirect.Op != syntax.AppOut {
			in.stdin = Anything
		}
		if err := in.redirect(redirect, stmt.Cmd); err != nil {
			return err
		}
	}
	if stmt.Cmd == nil {
		return nil
	}
	err := in.command(stmt.Cmd, stmt.Redirs)
	if stmt.Background || mergesErrors(stmt.Redirs) {
		s.output = Anything
	}
	return err
}

// mergesErrors reports whether a redirection can add another stream, such as the standard error, to the standard output.
func mergesErrors(redirects []*syntax.Redirect) bool {
	return slices.ContainsFunc(redirects, func(r *syntax.Redirect) bool { return r.Op == syntax.DplOut })
}

func (s *shell) command(command syntax.Command, redirects []*syntax.Redirect) error {
	s.output = Anything
	call, simple := command.(*syntax.CallExpr)
	if simple {
		return s.call(call, redirects)
	}
	if pipe, is := command.(*syntax.BinaryCmd); is {
		return s.binary(pipe)
	}
	err := s.compound(command)
	s.output = Anything // the output of all inner commands together
	return err
}

// compound reads a command that contains other commands.
func (s *shell) compound(command syntax.Command) error {
	top := s.top
	s.top = false
	defer func() { s.top = top }()
	switch c := command.(type) {
	case *syntax.Block:
		return s.stmts(c.Stmts)
	case *syntax.Subshell:
		return s.fork().stmts(c.Stmts)
	case *syntax.IfClause:
		return s.ifClause(c)
	case *syntax.WhileClause:
		return s.loop(append(c.Cond, c.Do...))
	case *syntax.ForClause:
		return s.forClause(c)
	case *syntax.CaseClause:
		return s.caseClause(c)
	case *syntax.FuncDecl:
		return s.declareFunction(c, top)
	case *syntax.TimeClause:
		if c.Stmt == nil {
			return nil
		}
		return s.stmt(c.Stmt)
	case *syntax.TestClause:
		return s.test(c.X)
	case *syntax.ArithmCmd:
		return s.arithmetic(c.X)
	case *syntax.DeclClause:
		return s.declare(c)
	case *syntax.LetClause:
		return unclear("let", "use $((…)) with numbers")
	default:
		return unclear(fmt.Sprintf("this kind of command (%T)", command), "")
	}
}

func (s *shell) binary(c *syntax.BinaryCmd) error {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		return s.pipe(c)
	case syntax.AndStmt, syntax.OrStmt:
		before := s.fork()
		if err := s.stmt(c.X); err != nil {
			return err
		}
		then := s.fork()
		if c.Op == syntax.OrStmt { // the left side failed at an unknown point
			then.join(before)
			then.args = before.args
		}
		if err := then.stmt(c.Y); err != nil {
			return err
		}
		s.join(then)
		s.output = Anything
		return nil
	default:
		return unclear("the operator "+c.Op.String(), "")
	}
}

// pipe reads both sides of a pipe, each in its own copy of the shell.
func (s *shell) pipe(c *syntax.BinaryCmd) error {
	left, right := s.fork(), s.fork()
	if err := left.stmt(c.X); err != nil {
		return err
	}
	if right.stdin = left.output; c.Op == syntax.PipeAll || !readsAll(c.Y) {
		right.stdin = Anything // the pipe also carries standard error, or several commands can share the input
	}
	stdin := right.stdin
	if err := right.stmt(c.Y); err != nil {
		return err
	}
	if s.output = right.output; s.output == Lines {
		s.output = stdin
	}
	return nil
}

// readsAll reports whether the right side of a pipe reads all of the pipe's text, and leaves none to a later command.
// It returns true for a command without input redirections, and for a loop around read. For a further pipe it checks
// that pipe's left side.
func readsAll(stmt *syntax.Stmt) bool {
	for _, redirect := range stmt.Redirs {
		if redirect.Op != syntax.RdrOut && redirect.Op != syntax.AppOut && redirect.Op != syntax.DplOut {
			return false
		}
	}
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		return true
	case *syntax.WhileClause:
		if len(c.Cond) != 1 {
			return false
		}
		call, is := c.Cond[0].Cmd.(*syntax.CallExpr)
		return is && len(call.Args) > 0 && call.Args[0].Lit() == "read"
	case *syntax.BinaryCmd:
		return c.Op == syntax.Pipe && readsAll(c.X)
	}
	return false
}

// functionName matches the permitted names of functions: letters, digits and _, beginning with a letter.
var functionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// declareFunction records a function. It refuses a function that could replace a program. It also refuses a function
// that is declared twice, or not at the top level of the script. It would be unclear which body a call of such a
// function runs.
func (s *shell) declareFunction(c *syntax.FuncDecl, top bool) error {
	name := c.Name.Value
	_, again := s.funcs[name]
	switch c.Body.Cmd.(type) {
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.ForClause, *syntax.WhileClause, *syntax.CaseClause:
	default: // the parser reads the next command as the body
		return unclear("the function "+name, "write its body in braces, and end it with a line break")
	}
	if _, builtin := builtins[name]; builtin || !functionName.MatchString(name) || name == "command_not_found_handle" ||
		s.env.Program != nil && s.env.Program(name) {
		return unclear("a function of the name "+name, "choose another name")
	}
	if again || !top || s.locals != nil {
		return unclear("the function "+name+", which is declared here", "declare it once, at the beginning")
	}
	s.funcs[name] = c.Body
	return nil
}

func (s *shell) ifClause(c *syntax.IfClause) error {
	if err := s.stmts(c.Cond); err != nil {
		return err
	}
	then := s.fork()
	if err := then.stmts(c.Then); err != nil {
		return err
	}
	if c.Else != nil {
		otherwise := s.fork()
		if err := otherwise.ifClause(c.Else); err != nil {
			return err
		}
		s.join(otherwise)
	}
	s.join(then)
	return nil
}

func (s *shell) caseClause(c *syntax.CaseClause) error {
	if _, err := s.text(c.Word); err != nil {
		return err
	}
	var branches []*shell
	for _, item := range c.Items {
		for _, pattern := range item.Patterns {
			if _, err := s.text(pattern); err != nil {
				return err
			}
		}
		branch := s.fork()
		branch.join(branches...) // the previous item can fall through
		if err := branch.stmts(item.Stmts); err != nil {
			return err
		}
		branches = append(branches, branch)
	}
	s.join(branches...)
	return nil
}

func isName(text string) bool { return syntax.ValidName(text) }

// redirect opens the file that a redirection names.
func (s *shell) redirect(r *syntax.Redirect, _ syntax.Command) error {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		return unclear("a redirection into a variable", "use a number")
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		var err error
		if r.Hdoc != nil {
			s.input, err = s.parts(r.Hdoc.Parts, quoted)
		}
		return err
	case syntax.WordHdoc:
		var err error
		s.input, err = s.text(r.Word)
		return err
	case syntax.DplIn, syntax.DplOut:
		target, err := s.text(r.Word)
		if known, ok := target.Known(); err == nil && ok && strings.Trim(known, "0123456789-") == "" {
			return nil
		}
		if err != nil || r.Op == syntax.DplIn {
			return errors.Join(err, unclear("this copy of a file descriptor", "write 2>&1"))
		}
		return s.visitor.Open(Access{Path: target, Write: true, Dir: s.dir}) // >& FILE
	case syntax.RdrIn:
		if r.Word.Lit() == "/dev/null" {
			s.stdin = Nothing
		}
		return s.opens(r.Word, false)
	case syntax.RdrInOut:
		return errors.Join(s.opens(r.Word, false), s.opens(r.Word, true))
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
		return s.opens(r.Word, true)
	case syntax.AppClob, syntax.RdrAllClob, syntax.AppAllClob:
	}
	return unclear("the redirection "+r.Op.String(), "use < or >")
}

func (s *shell) opens(word *syntax.Word, write bool) error {
	path, err := s.parts(word.Parts, unquoted)
	if err != nil {
		return err
	}
	return s.visitor.Open(Access{Path: path, Write: write, Dir: s.dir})
}
