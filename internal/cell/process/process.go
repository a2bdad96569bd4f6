package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const (
	// DefaultGrace is the time between SIGINT and SIGKILL if Spec.Grace is zero.
	DefaultGrace = 10 * time.Second

	// drainTimeout limits the time for which Run reads the output after the tree has ended. Without this limit Run
	// could wait for ever, because a process outside of the tree can still have the output open.
	drainTimeout = 5 * time.Second
)

// Spec describes a program to start and how to stop it.
type Spec struct {
	// Path is the executable, absolute or relative to Dir. It is not looked up on PATH.
	Path string
	// Args holds the arguments after the program's name.
	Args []string
	// Env is the whole environment, as "NAME=value". The program inherits no variables, even if Env is nil.
	Env []string
	// Dir is the working directory. Empty means the working directory of this process.
	Dir string
	// Run copies Stdin to the program's standard input. When Stdin ends, Run closes the standard input. Run waits until
	// the copying ends. If Stdin is nil, the program gets an empty input.
	Stdin io.Reader
	// Stdout and Stderr receive the program's output; nil discards it. One goroutine writes to each writer. No
	// goroutine writes after Run has returned.
	Stdout, Stderr io.Writer
	// Grace is the time between SIGINT and SIGKILL after Run's context has ended. Zero means DefaultGrace.
	Grace time.Duration
	// Containment is the containment mode of the tree. Empty means ModeAuto. If another mode is requested and not
	// available, Run fails.
	Containment Mode
	// Sandbox restricts the tree; nil means no restriction.
	Sandbox *Sandbox
	// User is the user of the tree's processes; nil means the user of this process. Another user requires a mode with
	// an init, and superuser rights.
	User *User
	// Mark is an entry of Env that identifies the tree's processes; empty means no mark. No other tree may have the
	// same entry at the same time. If the init of a tree without a namespace is killed, Run finds the rest of the tree
	// by its mark.
	Mark string
	// Run calls Started after the start of the tree, unless Started is nil.
	Started func(Tree)
	// Limits ends a tree that uses too much; zero for no limits.
	Limits Limits
}

// Limits are the most that a tree may use. Run looks several times a second, so a tree can exceed them for a moment.
// They need Linux.
type Limits struct {
	// Processes limits the processes at the same time, and Memory their resident memory in bytes. 0 means no limit.
	Processes, Memory int64
}

// LimitError says which limit a tree has exceeded. Run has killed the tree.
type LimitError struct{ Reason string }

// Error implements error.
func (e *LimitError) Error() string { return e.Reason }

// Exit describes how a program ended.
type Exit struct {
	// Code is the exit code. It is -1 if a signal ended the program, or if the program could not be ended.
	Code int
	// Signal is the signal that ended the program, or 0.
	Signal syscall.Signal
	// StoppedBy is the cause of the end of Run's context, if Run stopped the program. If the program ended on its own,
	// StoppedBy is nil.
	StoppedBy error
	// Containment is the containment of the tree.
	Containment Containment
	// Sandbox is the sandbox of the tree.
	Sandbox Sandboxed
	// Survivors counts the processes of the tree that are known to be alive. Without a namespace, these are processes
	// of another user that may not be killed, and processes that are still alive half a minute after SIGKILL.
	Survivors int
}

// String describes e for a person.
func (e Exit) String() string {
	switch {
	case e.Signal != 0:
		return fmt.Sprintf("ended by signal %d (%s)", int(e.Signal), e.Signal)
	case e.Code < 0:
		return "could not be ended"
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Run starts the program and returns when its whole tree has ended and its output is read. When ctx ends, Run sends
// SIGINT to the program and its group. After Spec.Grace it sends SIGKILL to the whole tree. The returned Exit describes
// the end of the program, even if Run has stopped the program. An error means that the program was not started, or that
// its end is unknown.
func Run(ctx context.Context, spec Spec) (Exit, error) {
	if ctx.Err() != nil {
		return Exit{}, fmt.Errorf("not starting %s: %w", spec.Path, context.Cause(ctx))
	}
	// Check the directory first, because the kernel reports a missing directory like a missing program.
	if err := checkDir(spec.Dir); err != nil {
		return Exit{}, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	// The kernel signals an init when the thread that started the init ends. So keep this goroutine on its thread until
	// the tree has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	started, containment, err := start(spec)
	if err != nil {
		return Exit{}, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	if spec.Started != nil {
		spec.Started(newTree(started.pid()))
	}
	if spec.Limits != (Limits{}) {
		limited, stop := within(ctx, started.pid(), spec.Limits)
		defer stop()
		ctx = limited
	}
	stoppedBy := supervise(ctx, started, spec.Grace)
	exit, err := started.collect()
	if err != nil {
		return Exit{}, err
	}
	exit.StoppedBy, exit.Containment = stoppedBy, containment
	return exit, nil
}

func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &os.PathError{Op: "chdir", Path: dir, Err: syscall.ENOTDIR}
	}
	return err
}

// supervise waits for the end of t. If ctx ends first, supervise stops t and returns the cause. If t ended on its own,
// supervise returns nil.
func supervise(ctx context.Context, t tree, grace time.Duration) (stoppedBy error) {
	select {
	case <-t.over():
		return nil
	case <-ctx.Done():
	}
	if grace == 0 {
		grace = DefaultGrace
	}
	if _, is := errors.AsType[*LimitError](context.Cause(ctx)); is {
		grace = 0 // it would use more
	} else {
		t.interrupt()
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case <-t.over():
	case <-patience.C:
		t.kill()
		<-t.over()
	}
	return context.Cause(ctx)
}

// ignoreOutcome returns nil if err only describes how the program ended, and otherwise err. It also returns nil for
// exec.ErrWaitDelay, because Run must return even if a process still has the output open.
func ignoreOutcome(err error, cmd *exec.Cmd) error {
	if err == nil || cmd.ProcessState == nil {
		return err
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

func exitOf(status syscall.WaitStatus) Exit {
	if status.Signaled() {
		return Exit{Code: -1, Signal: status.Signal()}
	}
	return Exit{Code: status.ExitStatus()}
}
