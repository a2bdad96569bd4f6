package process

import (
	"fmt"
	"os/exec"
	"syscall"
)

// group is a program in a process group of its own.
type group struct {
	cmd     *exec.Cmd
	sandbox Sandboxed
	exited  chan struct{}
	err     error // of waiting; read it when exited is closed
}

var _ tree = (*group)(nil)

// inGroup is the way that is to be had everywhere.
func inGroup() candidate {
	return candidate{
		Containment: Containment{
			Mode: ModeGroup, Reason: "what leaves the process group outlives the agent, and all of it outlives a killed worker",
		},
		start: startGroup,
		try:   func() error { return nil },
	}
}

// errNoInit is why a group is neither in a sandbox nor another user's: an init's child would set that up.
const errNoInit = "it takes a containment other than group"

// sandboxOf returns what becomes of a sandbox in a group, and an error if it, or a user, cannot be done without.
func sandboxOf(spec Spec) (Sandboxed, error) {
	switch {
	case spec.User != nil:
		return Sandboxed{}, &SandboxError{Reason: "the agent cannot run as another user: " + errNoInit}
	case spec.Sandbox == nil:
		return Sandboxed{}, nil
	case spec.Sandbox.Required:
		return Sandboxed{}, requiredSandbox(errNoInit)
	}
	return Sandboxed{Remark: errNoInit}, nil
}

func startGroup(spec Spec) (tree, error) {
	sandbox, err := sandboxOf(spec)
	if err != nil {
		return nil, err
	}
	g := &group{sandbox: sandbox, exited: make(chan struct{}), cmd: &exec.Cmd{
		Path:   spec.Path,
		Args:   append([]string{spec.Path}, spec.Args...),
		Env:    append([]string{}, spec.Env...), // not nil: a nil Env would inherit
		Dir:    spec.Dir,
		Stdin:  spec.Stdin,
		Stdout: spec.Stdout,
		Stderr: spec.Stderr,
		// A session of its own is a group of its own, and has no terminal at which it could wait for somebody.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		WaitDelay:   drainTimeout,
	}}
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		g.err = awaitExit(g.cmd)
		close(g.exited)
	}()
	return g, nil
}

func (g *group) pid() int { return g.cmd.Process.Pid }

// interrupt also wakes up those that are stopped.
func (g *group) interrupt() {
	g.signal(syscall.SIGINT)
	g.signal(syscall.SIGCONT)
}

func (g *group) kill() { g.signal(syscall.SIGKILL) }

func (g *group) over() <-chan struct{} { return g.exited }

// collect kills whatever is left of the group; the leader is not reaped yet, so the number is
// still its own.
func (g *group) collect() (Exit, error) {
	if g.err != nil {
		return Exit{}, fmt.Errorf("wait for %s: %w", g.cmd.Path, g.err)
	}
	g.signal(syscall.SIGKILL)
	if g.cmd.ProcessState == nil { // awaitExit had no need to reap it
		if err := ignoreOutcome(g.cmd.Wait(), g.cmd); err != nil {
			return Exit{}, fmt.Errorf("reap %s: %w", g.cmd.Path, err)
		}
	}
	status, _ := g.cmd.ProcessState.Sys().(syscall.WaitStatus)
	exit := exitOf(status)
	exit.Sandbox = g.sandbox
	return exit, nil
}

// signal sends sig to every process of the group. That the group is already gone is no error.
func (g *group) signal(sig syscall.Signal) { _ = syscall.Kill(-g.cmd.Process.Pid, sig) }
