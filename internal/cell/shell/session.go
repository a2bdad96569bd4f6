package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/claudeops/claudeops/internal/cell/door"
)

// session runs the scripts of one call of the agent.
type session struct {
	door   asker
	ticket string
	// socket is the path of the worker's socket, for programs that start other programs.
	socket string
	// execute starts an allowed program, waits for it, and returns its exit code.
	execute func(answer door.Answer, p given, job string) int
	// environ is the environment of the agent's scripts and programs.
	environ []string

	jobs  jobs
	traps traps
	times stopwatch
	pipes pipes
	// started counts the programs and jobs that have not ended.
	started sync.WaitGroup
}

// An asker answers the questions of a session.
type asker interface {
	Ask(question door.Question) (door.Answer, error)
}

// newSession returns the session of a call for which the worker has given the answer.
func newSession(guard *door.Door, environ []string, answer door.Answer) *session {
	s := &session{door: guard, ticket: answer.Ticket, socket: guard.Socket}
	s.execute = s.run
	s.environ = slices.DeleteFunc(without(environ, answer.Hidden), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return isForTheCLI(name)
	})
	return s
}

// without returns an environment without the variables of certain names.
func without(environ, names []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(names, name)
	})
}

// isForTheCLI reports whether the agent's programs do not get a variable: those of the guard's socket and of the CLI's
// messaging.
func isForTheCLI(variable string) bool {
	return variable == door.SocketVariable || variable == ticketVariable ||
		strings.HasPrefix(variable, "CLAUDE_CODE_MESSAGING_")
}

// given is what a program or a script gets from what started it.
type given struct {
	environ []string
	dir     string
	in      io.Reader
	out     io.Writer
	err     io.Writer
}

// maxScript limits a script on the standard input, in bytes.
const maxScript = 16 << 20

// maxStack limits the stack of a script, in bytes. It ends functions that call themselves.
const maxStack = 16 << 20

// interpret runs a script, and returns its exit code and its last directory.
func (s *session) interpret(script door.Script, p given) (code int, dir string) {
	variant := syntax.LangBash
	if script.POSIX {
		variant = syntax.LangPOSIX
	}
	text := script.Text
	if script.Input {
		content, err := io.ReadAll(io.LimitReader(p.in, maxScript))
		if err != nil {
			_, _ = fmt.Fprintln(p.err, err)
			return exitMistake, p.dir
		}
		text = string(content)
	}
	file, err := syntax.NewParser(syntax.Variant(variant), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		_, _ = fmt.Fprintln(p.err, err)
		return exitMistake, p.dir
	}
	if reason := unsupported(file, text); reason != "" {
		_, _ = fmt.Fprintln(p.err, reason)
		return exitMistake, p.dir
	}
	if file.Name = "bash"; len(script.Params) > 0 { // it is $0
		file.Name = script.Params[0]
	}
	normalize(file, endsAtFailure(file, script.Options))
	s.traps.watch()
	debug.SetMaxStack(maxStack)
	runner, err := s.runner(script, p)
	if err != nil {
		_, _ = fmt.Fprintln(p.err, err)
		return 1, p.dir
	}
	if err = s.prepare(runner, text, p.environ); err == nil {
		err = runner.Run(context.Background(), file)
	}
	var status interp.ExitStatus
	switch {
	case errors.As(err, &status):
		return int(status), runner.Dir
	case err != nil:
		_, _ = fmt.Fprintln(p.err, err)
		return 1, runner.Dir
	}
	return 0, runner.Dir
}

// runner returns an interpreter that asks the worker.
func (s *session) runner(script door.Script, p given) (*interp.Runner, error) {
	environ := slices.DeleteFunc(slices.Clone(p.environ),
		func(variable string) bool { return strings.HasPrefix(variable, "TMPDIR=") })
	options := append(slices.Clone(script.Options), "--")
	if len(script.Params) > 1 {
		options = append(options, script.Params[1:]...)
	}
	return interp.New(
		interp.Env(expand.ListEnviron(environ...)), interp.Dir(p.dir), interp.StdIO(p.in, p.out, p.err),
		interp.Params(options...), interp.CallHandler(s.call), interp.OpenHandler(s.open),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return s.start }),
	)
}

// prepare sets the variable TMPDIR. The interpreter opens every file of a certain name in the directory that TMPDIR
// names at its start without asking, because it puts its named pipes there. So that directory is a new one.
func (s *session) prepare(runner *interp.Runner, text string, environ []string) (err error) {
	temp := door.ValueOf(environ, "TMPDIR")
	pipes := "/dev/null/none"
	if strings.Contains(text, "<(") || strings.Contains(text, ">(") { // also in a script within a word
		if pipes, err = os.MkdirTemp(temp, "pipes-"); err != nil {
			return err
		}
		s.pipes.add(pipes)
	}
	if err := os.Setenv("TMPDIR", pipes); err != nil { //nolint:forbidigo // the interpreter reads it there
		return err
	}
	if temp == "" {
		return nil
	}
	quoted, err := syntax.Quote(temp, syntax.LangBash)
	if err != nil {
		return err
	}
	set, err := syntax.NewParser().Parse(strings.NewReader("export TMPDIR="+quoted), "")
	if err != nil {
		return err
	}
	return runner.Run(context.Background(), set.Stmts[0])
}

// end waits until no program and no background job runs, and removes the named pipes.
func (s *session) end() {
	s.jobs.wait()
	s.started.Wait()
	s.pipes.remove()
}

// pipes lists the directories with the named pipes of <(COMMAND). They stay until the last background job has ended.
type pipes struct {
	mutex sync.Mutex
	dirs  []string
}

func (p *pipes) add(dir string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.dirs = append(p.dirs, dir)
}

func (p *pipes) remove() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, dir := range p.dirs {
		_ = os.RemoveAll(dir)
	}
}

// maxGoroutines limits the commands that run at the same time. Each has about two goroutines. The limit ends fork
// bombs.
const maxGoroutines = 2000

// call is called before each command, with the words after all expansions.
func (s *session) call(ctx context.Context, args []string) ([]string, error) {
	shell := interp.HandlerCtx(ctx)
	if args[0] == jobEnd || args[0] == exitTrap { // also of a job or a script that was killed
		return args, nil
	}
	if code := s.traps.exits(); code != 0 {
		return []string{"exit", fmt.Sprint(code)}, nil
	}
	if code := s.jobs.killed(jobOf(shell)); code != 0 {
		return []string{"exit", fmt.Sprint(code)}, nil
	}
	if prints(args[0]) && nobodyReads(shell.Stdout) { // a shell would get SIGPIPE, and a program gets it itself
		return []string{"exit", fmt.Sprint(128 + int(syscall.SIGPIPE))}, nil
	}
	if runtime.NumGoroutine() > maxGoroutines {
		_, _ = fmt.Fprintln(shell.Stderr, "so many commands at the same time are not run")
		return []string{"exit", fmt.Sprint(exitDenied)}, nil
	}
	if callbacks := s.traps.pending(); len(callbacks) > 0 {
		return []string{"eval", strings.Join(callbacks, "\n") + "\n" + quote(args)}, nil
	}
	return s.replaced(args), nil
}

func quote(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

// start starts a program, and waits for it.
func (s *session) start(ctx context.Context, args []string) error {
	shell := interp.HandlerCtx(ctx)
	if builtin := s.builtin(args[0]); builtin != nil {
		return exitStatus(builtin(shell, args[1:]))
	}
	p := given{environ: exported(shell.Env), dir: shell.Dir, in: shell.Stdin, out: shell.Stdout, err: shell.Stderr}
	answer, code := s.ask(args, p)
	switch {
	case code != 0:
		return exitStatus(code)
	case answer.Interpret != nil:
		code, _ = s.interpret(*answer.Interpret, p)
		return exitStatus(code)
	}
	return exitStatus(s.execute(answer, p, jobOf(shell)))
}

func exitStatus(code int) error {
	if code == 0 {
		return nil
	}
	return interp.ExitStatus(code) //nolint:gosec // an exit code
}

// exported returns the environment that the shell gives to programs.
func exported(environ expand.Environ) []string {
	variables := map[string]string{}
	for name, variable := range environ.Each {
		delete(variables, name)
		if variable.IsSet() && variable.Exported && variable.Kind == expand.String {
			variables[name] = variable.String()
		}
	}
	all := make([]string, 0, len(variables))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		all = append(all, name+"="+variables[name])
	}
	return all
}

// ask asks the worker about a program. If the program must not or cannot be started, code is the exit code.
func (s *session) ask(words []string, p given) (answer door.Answer, code int) {
	answer, err := s.door.Ask(door.Question{Ticket: s.ticket, Start: &door.Start{
		Words: words, Dir: p.dir, Environ: p.environ,
	}})
	switch {
	case err != nil:
		_, _ = fmt.Fprintln(p.err, denial, err)
		return answer, exitDenied
	case !answer.Allowed:
		_, _ = fmt.Fprintln(p.err, denial, answer.Reason)
		return answer, exitDenied
	case answer.Path == "" && answer.Interpret == nil:
		_, _ = fmt.Fprintf(p.err, "%s: command not found\n", words[0])
		return answer, exitMissing
	}
	return answer, 0
}

// program returns what to execute for an answer, with the variables that only this program gets. A program that starts
// commands gets this executable in front of each, and the variables with which it asks.
func (s *session) program(answer door.Answer, p given) (path string, words, environ []string) {
	words, environ = answer.Words, append(without(p.environ, answer.Hidden), answer.Variables...)
	if len(answer.Inner) == 0 {
		return answer.Path, words, environ
	}
	self, err := os.Executable()
	if err != nil { // the command is then looked for under a name that does not exist
		self = "/dev/null/none"
	}
	for _, at := range slices.Backward(answer.Inner) {
		words = slices.Insert(words, at, self, runRole)
	}
	return answer.Path, words, append(environ, door.SocketVariable+"="+s.socket, ticketVariable+"="+s.ticket)
}

// prints reports whether a command is a builtin that writes to the standard output.
func prints(name string) bool {
	return slices.Contains([]string{"echo", "printf", "pwd", "type", "dirs", "help", "times"}, name)
}

// nobodyReads reports whether a pipe is written to that nobody reads any more.
func nobodyReads(stream io.Writer) (broken bool) {
	file, is := stream.(*os.File)
	if !is {
		return false
	}
	connection, err := file.SyscallConn()
	if err != nil {
		return false
	}
	_ = connection.Control(func(descriptor uintptr) { broken = isBroken(descriptor) })
	return broken
}
