package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/cell/process/proctable"
	"github.com/claudeops/claudeops/internal/cell/process/treeinit"
)

// killPatience is the time in which an init has to kill its tree. If the init takes longer, this process kills the
// tree. killPatience is longer than proctable.RefusedPatience, so that the init can first report the processes that it
// may not kill.
const killPatience = proctable.RefusedPatience + 2*time.Second

// contained is a tree whose program runs under an init.
type contained struct {
	mode    Mode
	path    string
	mark    string
	cmd     *exec.Cmd // the init
	control *os.File
	force   *time.Timer

	// refused is told of the files that a program may not use; nil if nobody wants to know.
	refused func(Refused)

	heard chan struct{} // closed when the init has reported for the last time
	// Read contained.last and contained.sandbox only after heard is closed.
	last    treeinit.Answer
	sandbox Sandboxed

	mu sync.Mutex
	// reaped is set before the init is reaped. From then on another process can have the init's process number.
	reaped bool
	// survivors counts the processes that were still alive when the init failed without a report.
	survivors int
}

var _ tree = (*contained)(nil)

// containedWays lists the candidates with an init that choice allows.
func containedWays(choice Mode) []candidate {
	namespace := way(Containment{
		Mode: ModeNamespace, Reason: "the program cannot send signals to processes of this host",
	}, unix.CLONE_NEWPID)
	userNamespace := way(Containment{
		Mode: ModeNamespace, Reason: "in a user namespace: the program cannot send signals to processes of this " +
			"host, nor use sudo",
	}, unix.CLONE_NEWPID|unix.CLONE_NEWUSER)
	subreaper := way(Containment{Mode: ModeSubreaper}, 0)
	if os.Geteuid() != 0 {
		subreaper.Reason = "what runs as another user, through sudo for instance, cannot be killed"
	}
	switch choice {
	case ModeNamespace:
		return []candidate{namespace, userNamespace}
	case ModeAuto, ModeSubreaper:
		return []candidate{subreaper}
	case ModeGroup:
	}
	return nil
}

// way returns the candidate that runs an init in new namespaces. The argument flags holds the clone flags of these
// namespaces; 0 means no new namespaces.
func way(containment Containment, flags uintptr) candidate {
	begin := func(spec Spec) (*contained, error) {
		t := &contained{mode: containment.Mode, path: spec.Path, mark: spec.Mark, heard: make(chan struct{})}
		if spec.Sandbox != nil && spec.Sandbox.Opens != nil {
			t.refused = spec.Sandbox.Opens.Refused
		}
		err := t.start(spec, flags)
		return t, err
	}
	return candidate{
		Containment: containment,
		start:       func(spec Spec) (tree, error) { return begin(spec) },
		try: func() error {
			t, err := begin(Spec{})
			if err == nil {
				_, err = t.collect()
			}
			return err
		},
	}
}

// start starts the init.
func (t *contained) start(spec Spec, flags uintptr) error {
	if t.mode == ModeSubreaper {
		if err := proctable.Check(); err != nil {
			return &unavailableError{"subreaper", err}
		}
	}
	given, err := writeJob(spec, t.mode)
	if err != nil {
		return err
	}
	defer func() { _ = given.Close() }()
	ours, theirs, err := newControl()
	if err != nil {
		return err
	}
	defer func() { _ = theirs.Close() }()
	t.cmd = initCommand(spec, t.mode, flags)
	t.cmd.ExtraFiles = []*os.File{theirs, given} // in the order that treeinit.Arguments requires
	if err := t.cmd.Start(); err != nil {
		_ = ours.Close()
		return asUnavailable(err, flags)
	}
	t.control = ours
	go t.listen()
	return nil
}

// initCommand returns the command of an init. The init passes its standard input, output and error to the program.
func initCommand(spec Spec, mode Mode, flags uintptr) *exec.Cmd {
	attributes := &syscall.SysProcAttr{
		// A new session has no terminal, so that an agent cannot wait for input from a terminal.
		Setsid:     true,
		Cloneflags: flags,
		Pdeathsig:  deathSignal(mode),
	}
	if flags&unix.CLONE_NEWUSER != 0 {
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	}
	return &exec.Cmd{
		Path:        treeinit.Image,
		Args:        treeinit.Arguments(treeinit.Mode(mode)),
		Env:         []string{}, // not nil: a nil Env would inherit this process's environment
		Stdin:       spec.Stdin,
		Stdout:      spec.Stdout,
		Stderr:      spec.Stderr,
		SysProcAttr: attributes,
		WaitDelay:   drainTimeout,
	}
}

// deathSignal returns the signal that the kernel sends to an init when the thread that started the init ends. The
// signal must be set before the init runs, because it belongs to the init's first thread. The init's code can run on
// another thread, which could not set the first thread's signal.
func deathSignal(mode Mode) syscall.Signal {
	if mode == ModeNamespace {
		return syscall.SIGKILL // ends the whole namespace
	}
	return syscall.SIGCONT // wakes the init, even if the agent has stopped it, so that it kills its tree
}

// asUnavailable converts err to an *unavailableError if this containment is not available on this host. If the start
// failed for another reason, asUnavailable returns err unchanged.
func asUnavailable(err error, flags uintptr) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err
	}
	switch {
	case errno == unix.ENOENT:
		return &unavailableError{"init", fmt.Errorf("%s: %w", treeinit.Image, errno)}
	case !slices.Contains(refusals(), errno):
		return err
	case flags&unix.CLONE_NEWUSER != 0:
		return &unavailableError{"user namespace", errno}
	case flags != 0:
		return &unavailableError{"PID namespace", errno}
	default:
		return err
	}
}

// refusals returns the errors with which the kernel, or a sandbox around this process, denies a namespace to this user.
func refusals() []syscall.Errno {
	return []syscall.Errno{unix.EPERM, unix.EACCES, unix.EINVAL, unix.ENOSPC, unix.EUSERS, unix.ENOSYS}
}

// listen reads the init's answers until the init ends.
func (t *contained) listen() {
	defer close(t.heard)
	answers := treeinit.NewAnswers(t.control)
	for {
		received, err := answers.Next()
		if err != nil {
			return
		}
		switch {
		case received.Kind == treeinit.AnswerLaunched:
			t.sandbox = Sandboxed(received.Sandbox)
		case received.Kind != treeinit.AnswerFileRefused:
			t.last = received
		case t.refused != nil:
			t.refused(Refused(received.File))
		}
	}
}

func (t *contained) pid() int { return t.cmd.Process.Pid }

func (t *contained) over() <-chan struct{} { return t.heard }

func (t *contained) interrupt() { t.send(treeinit.CommandInterrupt) }

// kill tells the init to kill the tree. If the init does not kill it within killPatience, for instance because the
// agent has stopped the init, this process kills the tree.
func (t *contained) kill() {
	t.send(treeinit.CommandKill)
	t.force = time.AfterFunc(killPatience, t.killFromOutside)
}

// send sends a command to the init. It ignores errors, because the init can have ended already.
func (t *contained) send(c treeinit.Command) { _, _ = t.control.Write([]byte{byte(c)}) }

// killFromOutside kills the tree without the help of its init. It kills the init last, because every orphan stays in
// the tree as long as the init lives.
func (t *contained) killFromOutside() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reaped {
		return
	}
	if t.mode == ModeSubreaper {
		t.survivors = proctable.EndDescendants(t.pid())
	}
	_ = t.cmd.Process.Kill()
}

func (t *contained) collect() (Exit, error) {
	<-t.heard
	err := awaitExit(t.cmd)
	t.mu.Lock()
	t.reaped = true
	t.mu.Unlock()
	if t.force != nil {
		t.force.Stop()
	}
	lost := t.mode == ModeSubreaper && t.last.Kind == treeinit.AnswerNone
	if lost && t.mark != "" { // the init was killed, and left orphans
		if _, err := EndMarked(t.mark); errors.Is(err, errUnkillable) {
			t.survivors = max(1, t.survivors)
		}
	}
	err = errors.Join(err, ignoreOutcome(t.cmd.Wait(), t.cmd), t.control.Close())
	if err != nil {
		return Exit{}, fmt.Errorf("wait for %s: %w", t.path, err)
	}
	exit, err := t.exit()
	exit.Sandbox = t.sandbox
	return exit, err
}

// exit returns the program's exit, which the init's last answer contains. If the init was killed, exit returns the
// init's exit.
func (t *contained) exit() (Exit, error) {
	switch t.last.Kind {
	case treeinit.AnswerEnded:
		exit := exitOf(t.last.Status)
		exit.Survivors = t.last.Survivors
		return exit, nil
	case treeinit.AnswerGivenUp:
		return Exit{Code: -1, Survivors: t.last.Survivors}, nil
	case treeinit.AnswerUnconfined:
		return Exit{}, requiredSandbox(t.last.Sandbox.Remark)
	case treeinit.AnswerUnjudged:
		return Exit{}, &SandboxError{Reason: unjudged + t.last.Sandbox.Remark}
	case treeinit.AnswerRefused:
		if t.last.Reason != "" {
			return Exit{}, &SandboxError{Reason: t.last.Reason}
		}
		return Exit{}, fmt.Errorf("start %s: %w", t.path, t.last.Errno)
	case treeinit.AnswerNone, treeinit.AnswerLaunched, treeinit.AnswerFileRefused:
	}
	// A signal has killed the init, and the program died with the init.
	if status, ok := t.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit := exitOf(status)
		exit.Survivors = t.survivors
		return exit, nil
	}
	return Exit{}, fmt.Errorf("wait for %s: its init ended without a report: %s", t.path, t.cmd.ProcessState)
}
