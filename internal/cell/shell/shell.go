// Package shell makes this executable the shell of the agents. The shell interprets scripts. Before it starts a
// program or opens a file, it asks the worker (package door) with the real words, directory, environment and path.
// No other shell is involved, so what runs is what was judged.
//
// The executable has one of three roles, all before main begins:
//
//   - The CLI starts it in place of bash, with a script of its own in which the agent's command is quoted. The worker
//     returns the command if the CLI's hook has asked for it before.
//   - A program that runs a command (xargs, timeout, find -exec) starts it in front of that command.
//   - In a script with background jobs, it starts itself, so that the CLI does not wait for the jobs.
//
// Every error in this package denies what was asked.
package shell

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/claudeops/claudeops/internal/cell/door"
)

const (
	// runRole and jobsRole are the first arguments in two of the roles.
	runRole  = "claudeops-run"
	jobsRole = "claudeops-jobs"
	// ticketVariable is the environment variable with the ticket of a call, for programs that start other programs.
	ticketVariable = "CLAUDEOPS_TICKET"

	// exitDenied is the exit code of a command that the worker denies, exitMissing that of a command that does not
	// exist.
	exitDenied  = 126
	exitMissing = 127
	// exitMistake is the exit code of a script that does not run at all.
	exitMistake = 2
	// denial is the beginning of the text on the standard error.
	denial = "The supervisor denies this command:"
)

func init() { //nolint:gochecknoinits // before the packages that take long
	environ := os.Environ() //nolint:forbidigo // this is a main of its own
	socket := door.ValueOf(environ, door.SocketVariable)
	if socket == "" || len(os.Args) < 2 {
		return
	}
	guard := &door.Door{Socket: socket}
	switch script, is := scriptOf(os.Args); {
	case os.Args[1] == runRole && len(os.Args) > 2:
		syscall.Exit(runCommand(guard, environ, os.Args[2:]))
	case os.Args[1] == jobsRole:
		syscall.Exit(runWithJobs(guard, environ))
	case is:
		syscall.Exit(runForCLI(guard, environ, script))
	}
}

// scriptOf returns the script in the arguments of a shell: PROGRAM SCRIPT, or bash -c [-l] SCRIPT.
func scriptOf(args []string) (script string, is bool) {
	if len(args) == 2 && !strings.HasPrefix(args[1], "-") {
		return args[1], filepath.Base(args[0]) != door.ShellName
	}
	last := len(args) - 1
	options := slices.DeleteFunc(slices.Clone(args[1:last]), func(arg string) bool { return arg == "-l" })
	return args[last], slices.Equal(options, []string{"-c"})
}

// runForCLI runs a script of the CLI, and returns the exit code.
func runForCLI(guard *door.Door, environ []string, script string) int {
	switch {
	case script == "env": // the CLI looks at the variables of its shell
		for _, variable := range environ {
			_, _ = fmt.Fprintln(os.Stdout, variable)
		}
		return 0
	case strings.HasPrefix(script, "SNAPSHOT_FILE="): // the CLI wants the functions and aliases of a person's shell
		return 1
	}
	answer, err := guard.Ask(door.Question{Script: script, Environ: environ})
	if err == nil && !answer.Allowed {
		err = errors.New(answer.Reason)
	}
	if err != nil {
		return door.Deny(err)
	}
	if hasJobs(answer.Command) {
		return startWithJobs(answer)
	}
	s := newSession(guard, environ, answer)
	defer s.pipes.remove()
	return s.command(answer)
}

// command runs the agent's command, and returns the exit code. It writes the last directory for the CLI.
func (s *session) command(answer door.Answer) int {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return door.Deny(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return door.Deny(fmt.Errorf("the working directory is gone: %w", err))
	}
	p := given{environ: s.environ, dir: dir, in: null, out: os.Stdout, err: os.Stderr}
	code, last := s.interpret(door.Script{Text: answer.Command}, p)
	if code == 0 && answer.Kept != "" {
		if resolved, err := filepath.EvalSymlinks(last); err == nil {
			_ = os.WriteFile(answer.Kept, []byte(resolved+"\n"), 0o600) // without it, the CLI stays in its directory
		}
	}
	return code
}

// runCommand asks for a command that another program starts, and becomes that command.
func runCommand(guard *door.Door, environ, words []string) int {
	s := newSession(guard, environ, door.Answer{Ticket: door.ValueOf(environ, ticketVariable)})
	dir, err := os.Getwd()
	if err != nil {
		return door.Deny(fmt.Errorf("the working directory is gone: %w", err))
	}
	p := given{environ: s.environ, dir: dir, in: os.Stdin, out: os.Stdout, err: os.Stderr}
	answer, code := s.ask(words, p)
	switch {
	case code != 0:
		return code
	case answer.Interpret != nil:
		s = newSession(guard, environ, door.Answer{Ticket: s.ticket, Hidden: answer.Hidden})
		p.environ = s.environ
		defer s.pipes.remove()
		code, _ = s.interpret(*answer.Interpret, p)
		return code
	}
	if answer.EmptyInput {
		if null, err := os.Open(os.DevNull); err != nil || dup(null, os.Stdin) != nil {
			return door.Deny(errors.New("the standard input cannot be emptied"))
		}
	}
	path, args, given := s.program(answer, p)
	err = s.limited(answer, func() error {
		return syscall.Exec(path, args, given) //nolint:gosec // the worker has allowed it
	})
	fmt.Fprintf(os.Stderr, "%s: %v\n", words[0], err)
	return exitDenied
}

// startWithJobs runs a script in a process of its own, and returns when the script has ended. Its background jobs go on
// in that process.
func startWithJobs(answer door.Answer) int {
	given, err := json.Marshal(answer)
	if err != nil {
		return door.Deny(err)
	}
	ended, end, err := os.Pipe()
	if err != nil {
		return door.Deny(err)
	}
	self, err := os.Executable()
	if err != nil {
		return door.Deny(err)
	}
	question, ask, err := os.Pipe()
	if err != nil {
		return door.Deny(err)
	}
	child, err := os.StartProcess(self, []string{self, jobsRole}, &os.ProcAttr{
		Files: []*os.File{question, os.Stdout, os.Stderr, end},
	})
	if err != nil {
		return door.Deny(err)
	}
	_ = question.Close()
	_ = end.Close()
	if _, err := ask.Write(given); err != nil {
		return door.Deny(err)
	}
	_ = ask.Close()
	stop := forward(child)
	defer stop()
	code := []byte{0}
	if _, err := ended.Read(code); err != nil { // it died
		state, _ := child.Wait()
		return max(1, state.ExitCode())
	}
	return int(code[0])
}

// forward passes the signals that end a script on to a process, until stop is called.
func forward(child *os.Process) (stop func()) {
	caught := make(chan os.Signal, 1)
	for _, one := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM} {
		if !signal.Ignored(one) { // as nohup ignores SIGHUP
			signal.Notify(caught, one)
		}
	}
	go func() {
		for one := range caught {
			_ = child.Signal(one) // it may have ended
		}
	}()
	return func() { signal.Stop(caught) }
}

// runWithJobs is the process of startWithJobs. It ends when the last background job has ended.
func runWithJobs(guard *door.Door, environ []string) int {
	var answer door.Answer
	if err := json.NewDecoder(os.Stdin).Decode(&answer); err != nil {
		return door.Deny(err)
	}
	end := os.NewFile(3, "end")
	syscall.CloseOnExec(int(end.Fd()))
	s := newSession(guard, environ, answer)
	code := s.command(answer)
	// Programs that run have the output themselves. This process lets it go, or the CLI would wait for all jobs.
	if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
		_ = errors.Join(dup(null, os.Stdout), dup(null, os.Stderr))
	}
	_, _ = end.Write([]byte{byte(code)}) //nolint:gosec // an exit code
	_ = end.Close()
	s.end()
	return code
}
