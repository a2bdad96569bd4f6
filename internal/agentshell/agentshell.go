// Package agentshell is what the CLI starts in place of a shell: this executable, which asks the worker before anything
// runs. It has two roles, told apart by the script that the CLI hands over. For the script of the PreToolUse hook it
// passes the CLI's question on and prints the answer. Every other script it runs with bash, if the worker says that
// the guard has allowed it.
//
// Whatever goes wrong here denies the call.
//
// The package imports nothing but the standard library, and not its net: Go initializes packages in the order of their
// paths as soon as their imports are, and so net after most others. The roles are played before those of the SDK and of
// the database are begun. That halves the time of a call.
package agentshell

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// SocketVariable names the socket on which the worker answers. It is in the environment of the CLI alone.
	SocketVariable = "CLAUDEOPS_GUARD"
	// HookScript is the command of the PreToolUse hook. Where this package is not between the CLI and its shell the
	// command does not exist, and the call is denied.
	HookScript = "claudeops-guard-hook || exit 2"
	// Shell runs what is allowed.
	Shell = "/bin/bash"

	// patience is how long the worker may take for an answer: less than the CLI waits for a hook.
	patience = 50 * time.Second
	// maxQuestion bounds what the CLI says, in bytes: a file that the agent writes is in it.
	maxQuestion = 64 << 20
	// exitDenied makes the CLI deny a call, and show the agent what was printed on the standard error.
	exitDenied = 2
	// denial begins what is printed.
	denial = "The supervisor denies this call:"
)

// Question is what a process asks the worker: one line of JSON.
type Question struct {
	// Hook is what the CLI has given its hook: the tool and its input.
	Hook json.RawMessage `json:"hook,omitempty"`
	// Script is what the CLI wants its shell to run.
	Script string `json:"script,omitempty"`
}

// Answer is what the worker says: one line of JSON.
type Answer struct {
	// Output is for the CLI, where its hook asked.
	Output json.RawMessage `json:"output,omitempty"`
	// Run says that the script may run.
	Run bool `json:"run,omitempty"`
	// Reason says why not.
	Reason string `json:"reason,omitempty"`
}

func init() { //nolint:gochecknoinits // before the packages that take long
	environ := os.Environ() //nolint:forbidigo // this is a main of its own
	if socket := valueOf(environ, SocketVariable); socket != "" && len(os.Args) == 2 {
		syscall.Exit(run(socket, os.Args[1], environ))
	}
}

// valueOf returns the value of a variable, or "".
func valueOf(environ []string, name string) string {
	for _, variable := range environ {
		if value, is := strings.CutPrefix(variable, name+"="); is {
			return value
		}
	}
	return ""
}

// run plays the role that the script asks for, and returns the exit code.
func run(socket, script string, environ []string) int {
	role := answerHook
	if script != HookScript {
		role = func(socket string) error { return runScript(socket, script, environ) }
	}
	if err := role(socket); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, denial, err)
		return exitDenied
	}
	return 0
}

// answerHook passes the CLI's question on, and prints the answer.
func answerHook(socket string) error {
	question, err := io.ReadAll(io.LimitReader(os.Stdin, maxQuestion))
	if err != nil {
		return fmt.Errorf("the call could not be read: %w", err)
	}
	answer, err := ask(socket, Question{Hook: question})
	if err != nil {
		return err
	}
	if len(answer.Output) == 0 {
		return errors.New(answer.Reason)
	}
	_, err = os.Stdout.Write(append(answer.Output, '\n'))
	return err
}

// runScript becomes the shell that runs the script.
func runScript(socket, script string, environ []string) error {
	answer, err := ask(socket, Question{Script: script})
	if err != nil {
		return err
	}
	if !answer.Run {
		return errors.New(answer.Reason)
	}
	environ = slices.DeleteFunc(environ, isForTheCLI)
	return syscall.Exec(Shell, []string{Shell, "-c", script}, environ) //nolint:gosec // the worker has allowed it
}

// isForTheCLI reports whether a variable is none of the agent's business: where its calls are decided on, and where the CLI
// takes messages.
func isForTheCLI(variable string) bool {
	return strings.HasPrefix(variable, SocketVariable+"=") || strings.HasPrefix(variable, "CLAUDE_CODE_MESSAGING_")
}

// ask asks the worker. It ends the process, and so denies the call, when the worker takes too long.
func ask(socket string, question Question) (Answer, error) {
	time.AfterFunc(patience, func() {
		_, _ = fmt.Fprintln(os.Stderr, denial, "the worker gives no answer in", patience)
		syscall.Exit(exitDenied)
	})
	connection, err := connect(socket)
	if err != nil {
		return Answer{}, fmt.Errorf("the worker does not answer: %w", err)
	}
	defer func() { _ = connection.Close() }()
	if err := json.NewEncoder(connection).Encode(question); err != nil {
		return Answer{}, fmt.Errorf("the worker does not listen: %w", err)
	}
	var answer Answer
	if err := json.NewDecoder(io.LimitReader(connection, maxQuestion)).Decode(&answer); err != nil {
		return Answer{}, fmt.Errorf("the worker gives no answer: %w", err)
	}
	return answer, nil
}

// connect returns a connection to a socket in the file system.
func connect(path string) (*os.File, error) {
	descriptor, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(descriptor) // nothing else starts a program meanwhile
	connection := os.NewFile(uintptr(descriptor), path)
	return connection, syscall.Connect(descriptor, &syscall.SockaddrUnix{Name: path})
}
