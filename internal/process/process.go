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
	// DefaultGrace is how long a program may take to end after SIGINT when Spec.Grace is zero.
	DefaultGrace = 10 * time.Second

	// drainTimeout bounds how long Run reads on after the tree has ended, when something
	// outside of it still holds its output open.
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
	// Stdin is copied to the program, then closed; nil is an empty input. Run waits for its end.
	Stdin io.Reader
	// Stdout and Stderr get the program's output; nil discards it. Each is written by one
	// goroutine, and by none once Run has returned.
	Stdout, Stderr io.Writer
	// Grace is the time between SIGINT and SIGKILL when Run's context ends; zero is DefaultGrace.
	Grace time.Duration
	// Containment is how the tree is to be held together; empty is ModeAuto. Run fails when a
	// mode that is asked for by name is not to be had.
	Containment Mode
	// Sandbox is what the kernel keeps the tree from; nil is nothing.
	Sandbox *Sandbox
	// User is whom the tree runs as; nil is this process's own user. It takes an init, and the superuser's rights.
	User *User
	// Mark is an entry of Env that no other tree has at the same time; empty is none. Should the
	// init of a tree without a namespace be killed, the tree's rest is found by it.
	Mark string
	// Started is called once the tree stands, with the number of the process that all of it comes of:
	// its init's, or in ModeGroup the program's. It may be nil.
	Started func(pid int)
}

// Exit is how a program ended.
type Exit struct {
	// Code is the exit code, or -1 when a signal ended the program, or nothing did.
	Code int
	// Signal is the signal that ended the program, or 0.
	Signal syscall.Signal
	// StoppedBy is the cause of the context that made Run stop the program, or nil when the
	// program ended by itself.
	StoppedBy error
	// Containment is what held the tree together.
	Containment Containment
	// Sandbox is what became of Spec.Sandbox.
	Sandbox Sandboxed
	// Survivors counts processes of the tree that are known to live on: without a namespace those that
	// may not be killed, another user's, and those that had not died half a minute after they were.
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

// Run starts the program and returns when it has ended, what came of it too, and its output is
// read. The end of ctx sends SIGINT to the program and its group, and SIGKILL to everything after
// Spec.Grace; Run then still returns an Exit and no error. An error means that the program was not
// started, or that what became of it cannot be told.
func Run(ctx context.Context, spec Spec) (Exit, error) {
	if ctx.Err() != nil {
		return Exit{}, fmt.Errorf("not starting %s: %w", spec.Path, context.Cause(ctx))
	}
	// The kernel would not tell that from a missing program.
	if err := checkDir(spec.Dir); err != nil {
		return Exit{}, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	// The kernel takes the end of the thread that started an init for the end of this process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	started, containment, err := start(spec)
	if err != nil {
		return Exit{}, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	if spec.Started != nil {
		spec.Started(started.pid())
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

// supervise waits for the end of t, and stops it when ctx ends before that. It returns why it
// stopped t, or nil when it did not.
func supervise(ctx context.Context, t tree, grace time.Duration) (stoppedBy error) {
	select {
	case <-t.over():
		return nil
	case <-ctx.Done():
	}
	if grace == 0 {
		grace = DefaultGrace
	}
	t.interrupt()
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

// ignoreOutcome drops the errors of exec.Cmd.Wait that describe the program rather than the
// waiting, or that someone still holds its output open, which must not keep a run from ending.
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
