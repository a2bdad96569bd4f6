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
	err     error // error of awaitExit; read it only after exited is closed
}

var _ tree = (*group)(nil)

// inGroup returns the candidate for ModeGroup, which is available everywhere.
func inGroup() candidate {
	return candidate{
		Containment: Containment{
			Mode: ModeGroup, Reason: "what leaves the process group outlives the agent, and all of it outlives a " +
				"killed worker",
		},
		start: startGroup,
		try:   func() error { return nil },
	}
}

// errNoInit is the reason for which ModeGroup supports no sandbox and no other user. Both need an init, which ModeGroup
// does not have.
const errNoInit = "it takes a containment other than group"

// sandboxOf returns the state of spec's sandbox in ModeGroup. ModeGroup never has a sandbox. If spec requires a sandbox
// or another user, sandboxOf returns an error.
func sandboxOf(spec Spec) (Sandboxed, error) {
	switch {
	case spec.User != nil:
		return Sandboxed{}, &SandboxError{Reason: "the agent cannot run as another user: " + errNoInit}
	case spec.Sandbox == nil:
		return Sandboxed{}, nil
	case spec.Sandbox.Judged:
		return Sandboxed{}, &SandboxError{Reason: unjudged + errNoInit}
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
		Env:    append([]string{}, spec.Env...), // not nil: a nil Env would inherit this process's environment
		Dir:    spec.Dir,
		Stdin:  spec.Stdin,
		Stdout: spec.Stdout,
		Stderr: spec.Stderr,
		// A new session is also a new group. It has no terminal, so the program cannot wait for input from a terminal.
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

// interrupt sends SIGINT to the group. Then it sends SIGCONT, so that stopped processes receive the SIGINT, too.
func (g *group) interrupt() {
	g.signal(syscall.SIGINT)
	g.signal(syscall.SIGCONT)
}

func (g *group) kill() { g.signal(syscall.SIGKILL) }

func (g *group) over() <-chan struct{} { return g.exited }

// collect kills the rest of the group. On Linux the group's leader is reaped only afterwards. Until then no other group
// can get the number of this group.
func (g *group) collect() (Exit, error) {
	if g.err != nil {
		return Exit{}, fmt.Errorf("wait for %s: %w", g.cmd.Path, g.err)
	}
	g.signal(syscall.SIGKILL)
	if g.cmd.ProcessState == nil { // awaitExit has not reaped the leader
		if err := ignoreOutcome(g.cmd.Wait(), g.cmd); err != nil {
			return Exit{}, fmt.Errorf("reap %s: %w", g.cmd.Path, err)
		}
	}
	status, _ := g.cmd.ProcessState.Sys().(syscall.WaitStatus)
	exit := exitOf(status)
	exit.Sandbox = g.sandbox
	return exit, nil
}

// signal sends sig to every process of the group. It ignores errors, because the group can have ended already.
func (g *group) signal(sig syscall.Signal) { _ = syscall.Kill(-g.cmd.Process.Pid, sig) }
