// Package process starts one program in a process group of its own, waits for it, and
// stops the whole group when it is told to. Nothing else in this repository starts processes.
//
//	start -> running -> exited by itself --------------------------+-> rest of the group killed -> reaped
//	            |                                                  |
//	            +-> ctx ended: SIGINT -> grace -> SIGKILL, always --+
//
// A process that leaves its group (setsid) is out of this package's reach.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

const (
	// DefaultGrace is how long a program may take to end after SIGINT when Spec.Grace is zero.
	DefaultGrace = 10 * time.Second

	// drainTimeout bounds how long Run reads on after the program has ended, when something
	// outside the group still holds its output open.
	drainTimeout = 5 * time.Second
)

// Spec says what to start and how to stop it.
type Spec struct {
	// Path is the executable, absolute or relative to Dir. It is not looked up on PATH.
	Path string
	// Args are the arguments after the program's name.
	Args []string
	// Env is the whole environment, as "NAME=value". Nothing is inherited, also when it is nil.
	Env []string
	// Dir is the working directory; empty is this process's own.
	Dir string
	// Stdin is copied to the program, then closed; nil is an empty input.
	Stdin io.Reader
	// Stdout and Stderr get the program's output; nil discards it. Each is written by one
	// goroutine, and by none once Run has returned.
	Stdout, Stderr io.Writer
	// Grace is the time between SIGINT and SIGKILL when Run's context ends; zero is DefaultGrace.
	Grace time.Duration
}

// Exit is how a program ended.
type Exit struct {
	// Code is the exit code, or -1 when a signal ended the program.
	Code int
	// Signal is the signal that ended the program, or 0.
	Signal syscall.Signal
	// StoppedBy is the cause of the context that made Run stop the program, or nil when the
	// program ended by itself.
	StoppedBy error
}

// String describes e for a person.
func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("ended by signal %d (%s)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Run starts the program and returns when it has ended, its group with it, and its output is
// read. The end of ctx sends SIGINT to the group, and SIGKILL after Spec.Grace; Run then still
// returns an Exit and no error. An error means that the program was not started, or that what
// became of it cannot be told.
func Run(ctx context.Context, spec Spec) (Exit, error) {
	if ctx.Err() != nil {
		return Exit{}, fmt.Errorf("not starting %s: %w", spec.Path, context.Cause(ctx))
	}
	cmd := command(spec)
	if err := cmd.Start(); err != nil {
		return Exit{}, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	exited := make(chan error, 1)
	go func() { exited <- awaitExit(cmd) }()

	stoppedBy, err := superviseGroup(ctx, cmd.Process.Pid, spec.Grace, exited)
	if err != nil {
		return Exit{}, fmt.Errorf("wait for %s: %w", spec.Path, err)
	}
	// Whatever is left of the group goes too; the leader is not reaped yet, so the number is still its own.
	signalGroup(cmd.Process.Pid, syscall.SIGKILL)
	if err := reap(cmd); err != nil {
		return Exit{}, fmt.Errorf("reap %s: %w", spec.Path, err)
	}
	return exitOf(cmd, stoppedBy), nil
}

// command translates spec.
func command(spec Spec) *exec.Cmd {
	return &exec.Cmd{
		Path:        spec.Path,
		Args:        append([]string{spec.Path}, spec.Args...),
		Env:         append([]string{}, spec.Env...), // not nil: a nil Env would inherit
		Dir:         spec.Dir,
		Stdin:       spec.Stdin,
		Stdout:      spec.Stdout,
		Stderr:      spec.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		WaitDelay:   drainTimeout,
	}
}

// superviseGroup waits for the leader's exit and stops the group when ctx ends before that. It
// returns why it stopped the group, or nil when the leader ended by itself.
func superviseGroup(ctx context.Context, pgid int, grace time.Duration, exited <-chan error) (stoppedBy, err error) {
	select {
	case err := <-exited:
		return nil, err
	case <-ctx.Done():
	}
	if grace == 0 {
		grace = DefaultGrace
	}
	signalGroup(pgid, syscall.SIGINT)
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case err := <-exited:
		return context.Cause(ctx), err
	case <-patience.C:
	}
	signalGroup(pgid, syscall.SIGKILL)
	return context.Cause(ctx), <-exited
}

// signalGroup sends sig to every process of the group. That the group is already gone is no error.
func signalGroup(pgid int, sig syscall.Signal) { _ = syscall.Kill(-pgid, sig) }

// reap collects the leader and waits for its output to be read. That it failed, or that someone
// still holds its output open, is not reap's error: the Exit tells the first, and the second
// must not keep a finished run from ending.
func reap(cmd *exec.Cmd) error {
	if cmd.ProcessState != nil { // awaitExit had to reap it
		return nil
	}
	return ignoreOutcome(cmd.Wait(), cmd)
}

// ignoreOutcome drops the errors of exec.Cmd.Wait that describe the program rather than the waiting.
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

func exitOf(cmd *exec.Cmd, stoppedBy error) Exit {
	exit := Exit{Code: cmd.ProcessState.ExitCode(), StoppedBy: stoppedBy}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = status.Signal()
	}
	return exit
}
