// Package door is the agents' side of the guard's socket. A process of an agent connects to the socket, and the worker
// answers its questions: may this call be made, this script be run, this program be started, this file be opened?
//
// In the process that the CLI starts as its PreToolUse hook, the package passes the CLI's question on, prints the
// answer and ends the process, before main begins.
//
// Every error in this package denies what was asked.
//
// The package imports only the standard library, without package net. Go initializes packages in the order of their
// paths, each as soon as its imports are initialized. Package net is initialized after most others. Without package
// net, door is initialized before the Temporal SDK and the database, which halves the time of a hook.
package door

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// SocketVariable is the environment variable with the path of the worker's socket. The CLI has this variable in its
	// environment. Of the agent's programs, only those that start other programs have it.
	SocketVariable = "CLAUDEOPS_GUARD"
	// ShellName is the name of a link to this executable, for the variable SHELL. The CLI accepts no shell with another
	// name than bash or zsh.
	ShellName = "bash"
	// HookScript is the argument with which the CLI starts this executable as its PreToolUse hook.
	HookScript = "claudeops-guard-hook"

	// patience limits the wait for an answer of the worker. It is shorter than the CLI's time limit for a hook.
	patience = 50 * time.Second
	// maxMessage limits a question and an answer, in bytes. A question can contain a whole file that the agent writes.
	maxMessage = 16 << 20
	// exitDenied is the exit code that makes the CLI deny a call, and show the agent the text on the standard error.
	exitDenied = 2
	// denial is the beginning of the text on the standard error.
	denial = "The supervisor denies this call:"
)

// Question is a question to the worker. Exactly one of Hook, Script, Start and Open is set.
type Question struct {
	// Hook is the CLI's input to its hook: the tool and the tool's input.
	Hook json.RawMessage `json:"hook,omitempty"`
	// Script is the script that the CLI wants its shell to run, and Environ the environment of that shell.
	Script  string   `json:"script,omitempty"`
	Environ []string `json:"environ,omitempty"`
	// Ticket is the ticket from the answer to Script, for the questions Start and Open.
	Ticket string `json:"ticket,omitempty"`
	Start  *Start `json:"start,omitempty"`
	Open   *Open  `json:"open,omitempty"`
}

// Start asks whether a program may be started.
type Start struct {
	Words []string `json:"words"`
	// Dir is the working directory, an absolute path.
	Dir     string   `json:"dir"`
	Environ []string `json:"environ"`
}

// Open asks whether the shell may open a file.
type Open struct {
	// Path is absolute.
	Path  string `json:"path"`
	Write bool   `json:"write,omitempty"`
}

// Answer is the worker's answer.
type Answer struct {
	// Output is the output of the hook for the CLI, if the question has a Hook.
	Output json.RawMessage `json:"output,omitempty"`
	// Allowed answers Script, Start and Open.
	Allowed bool `json:"allowed,omitempty"`
	// Reason says why it is denied.
	Reason string `json:"reason,omitempty"`

	// Ticket stands for the call in the questions of its shell. Command is the agent's script. Kept is the file in
	// which the CLI expects the shell's last directory; empty if it expects none.
	Ticket  string `json:"ticket,omitempty"`
	Command string `json:"command,omitempty"`
	Kept    string `json:"kept,omitempty"`

	// Hidden lists variables of the question that scripts and programs do not get.
	Hidden []string `json:"hidden,omitempty"`
	// Variables lists variables, as NAME=value, that only the program to start gets.
	Variables []string `json:"variables,omitempty"`

	// Path is the file of the program to start or of the file to open, without symbolic links. It is empty for a
	// program that was not found, and for the shell's own streams.
	Path string `json:"path,omitempty"`
	// Words are the words with which to start the program. This executable must stand in front of each word whose index
	// is in Inner, because the program starts that word as a command.
	Words []string `json:"words,omitempty"`
	Inner []int    `json:"inner,omitempty"`
	// Executable lists the files that the program may execute, its own among them; nil if there is no limit.
	Executable []string `json:"executable,omitempty"`
	// Offline reports that the program may open no sockets. It holds only with Executable.
	Offline bool `json:"offline,omitempty"`
	// EmptyInput reports that the program must get an empty standard input.
	EmptyInput bool `json:"empty_input,omitempty"`
	// Interpret is the script to interpret in place of starting the program.
	Interpret *Script `json:"interpret,omitempty"`
}

// Script is a script that is interpreted.
type Script struct {
	Text string `json:"text,omitempty"`
	// Input reports that the script is on the standard input, and not in Text.
	Input bool `json:"input,omitempty"`
	// POSIX reports that the script is for sh, not for bash.
	POSIX bool `json:"posix,omitempty"`
	// Options are options of the shell, such as -e.
	Options []string `json:"options,omitempty"`
	// Params are the parameters $1, $2 and so on.
	Params []string `json:"params,omitempty"`
}

func init() { //nolint:gochecknoinits // before the packages that take long
	environ := os.Environ() //nolint:forbidigo // this is a main of its own
	if socket := ValueOf(environ, SocketVariable); socket != "" && len(os.Args) == 2 && os.Args[1] == HookScript {
		syscall.Exit(runHook(socket))
	}
}

// ValueOf returns the value of a variable, or "".
func ValueOf(environ []string, name string) string {
	for _, variable := range environ {
		if value, is := strings.CutPrefix(variable, name+"="); is {
			return value
		}
	}
	return ""
}

// Deny prints why the worker denies a call of the CLI, and returns the exit code for the CLI.
func Deny(err error) (exit int) {
	_, _ = fmt.Fprintln(os.Stderr, denial, err)
	return exitDenied
}

func runHook(socket string) int {
	if err := answerHook(socket); err != nil {
		return Deny(err)
	}
	return 0
}

// answerHook forwards the CLI's question to the worker, and prints the answer.
func answerHook(socket string) error {
	question, err := io.ReadAll(io.LimitReader(os.Stdin, maxMessage))
	if err != nil {
		return fmt.Errorf("the call could not be read: %w", err)
	}
	door := &Door{Socket: socket}
	answer, err := door.Ask(Question{Hook: question})
	if err != nil {
		return err
	}
	if len(answer.Output) == 0 {
		return errors.New(answer.Reason)
	}
	_, err = os.Stdout.Write(append(answer.Output, '\n'))
	return err
}

// Door asks the worker, over one connection. It is safe for concurrent use.
type Door struct {
	Socket string

	mutex      sync.Mutex
	connection *os.File
	answers    *json.Decoder
}

// Ask returns the worker's answer. If the worker gives none within the limit patience, Ask ends this process.
func (d *Door) Ask(question Question) (Answer, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	timer := time.AfterFunc(patience, func() {
		syscall.Exit(Deny(fmt.Errorf("the worker gives no answer in %s",
			patience)))
	})
	defer timer.Stop()
	if d.connection == nil {
		connection, err := connect(d.Socket)
		if err != nil {
			return Answer{}, fmt.Errorf("the worker does not answer: %w", err)
		}
		d.connection, d.answers = connection, json.NewDecoder(connection)
	}
	if err := json.NewEncoder(d.connection).Encode(question); err != nil {
		return Answer{}, fmt.Errorf("the worker does not listen: %w", err)
	}
	var answer Answer
	if err := d.answers.Decode(&answer); err != nil {
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
	syscall.CloseOnExec(descriptor) // no program is started in the meantime
	connection := os.NewFile(uintptr(descriptor), path)
	if err := syscall.Connect(descriptor, &syscall.SockaddrUnix{Name: path}); err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return connection, nil
}
