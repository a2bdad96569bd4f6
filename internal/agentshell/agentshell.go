// Package agentshell makes this executable the shell that the CLI starts. The executable asks the worker for permission
// before it runs a script. The script that the CLI passes selects one of two roles. For HookScript, the command of the
// PreToolUse hook, the executable forwards the CLI's question to the worker and prints the answer. For any other
// script, the executable asks the worker for permission to run the script. If the worker permits the script, the
// executable runs the script with bash.
//
// Every error in this package denies the call.
//
// The package imports only the standard library, without package net. Go initializes packages in the order of their
// paths, each as soon as its imports are initialized. Package net is initialized after most others. Without package
// net, agentshell is initialized before the Temporal SDK and the database, which halves the time of a call.
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
	// SocketVariable is the environment variable with the path of the worker's socket. The CLI has this variable in its
	// environment. The agent's commands do not have it.
	SocketVariable = "CLAUDEOPS_GUARD"
	// HookScript is the command of the PreToolUse hook. If the CLI uses a real shell instead of this package, that
	// shell does not find the command, and "exit 2" denies the call.
	HookScript = "claudeops-guard-hook || exit 2"
	// Shell is the shell that runs allowed scripts.
	Shell = "/bin/bash"

	// patience limits the wait for an answer of the worker. patience is shorter than the CLI's time limit for a hook.
	patience = 50 * time.Second
	// maxQuestion limits a question of the CLI and an answer of the worker, in bytes. A question can contain a whole
	// file that the agent writes.
	maxQuestion = 64 << 20
	// exitDenied is the exit code that makes the CLI deny a call, and show the agent the text on the standard error.
	exitDenied = 2
	// denial is the beginning of the text on the standard error.
	denial = "The supervisor denies this call:"
)

// Question is a question to the worker, sent as one line of JSON.
type Question struct {
	// Hook is the CLI's input to its hook: the tool and the tool's input.
	Hook json.RawMessage `json:"hook,omitempty"`
	// Script is the script that the CLI wants its shell to run.
	Script string `json:"script,omitempty"`
}

// Answer is the worker's answer, sent as one line of JSON.
type Answer struct {
	// Output is the output of the hook for the CLI, if the question has a Hook.
	Output json.RawMessage `json:"output,omitempty"`
	// Run reports that the worker permits the script to run.
	Run bool `json:"run,omitempty"`
	// Reason says why the call is denied.
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

// run performs the role that the script selects, and returns the exit code.
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

// answerHook forwards the CLI's question to the worker, and prints the answer.
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

// runScript asks the worker for permission to run the script. If the worker permits it, runScript replaces this process
// with the shell that runs the script.
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

// isForTheCLI reports whether a variable must be removed from the environment of the agent's commands. It matches the
// variables for the guard's socket and for the CLI's messaging.
func isForTheCLI(variable string) bool {
	return strings.HasPrefix(variable, SocketVariable+"=") || strings.HasPrefix(variable, "CLAUDE_CODE_MESSAGING_")
}

// ask sends a question to the worker and returns the answer. If the worker does not answer within the limit patience,
// ask ends this process, and the CLI denies the call.
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

// connect returns a connection to the Unix socket at path.
func connect(path string) (*os.File, error) {
	descriptor, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(descriptor) // no other goroutine starts a program in the meantime
	connection := os.NewFile(uintptr(descriptor), path)
	return connection, syscall.Connect(descriptor, &syscall.SockaddrUnix{Name: path})
}
