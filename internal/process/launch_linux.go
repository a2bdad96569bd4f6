package process

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// launchName is the argument zero by which this executable is asked to be a launcher: a process that an init
// starts, that gives up rights, and becomes the program. Go runs nothing between fork and exec, and an init
// that gave them up itself could not end its tree any more, and could be ended by it.
const launchName = "claudeops-launch"

// launchDescriptor is what a launcher tells its init through. The order is at orderDescriptor.
const launchDescriptor = 3

// launched is what a launcher tells.
type launched struct {
	// Sandbox is what became of the order's.
	Sandbox Sandboxed
	// Refused says why the program was not started, where that is no matter of the program.
	Refused string
	// Errno is why the program was refused; 0 if it was not.
	Errno syscall.Errno
}

// runLaunch becomes the program, or returns.
func runLaunch() {
	runtime.LockOSThread() // Landlock and capabilities are a thread's
	tell := gob.NewEncoder(os.NewFile(launchDescriptor, "launch"))
	given, err := readOrder()
	if err != nil {
		return
	}
	unix.CloseOnExec(launchDescriptor)
	state, err := given.giveUpRights()
	if err != nil {
		_ = tell.Encode(launched{Sandbox: state, Refused: err.Error()})
		return
	}
	if tell.Encode(launched{Sandbox: state}) != nil || given.Path == "" {
		return
	}
	_ = tell.Encode(launched{Sandbox: state, Errno: given.become()})
}

// giveUpRights does what the order asks for before there is a program.
func (o *order) giveUpRights() (state Sandboxed, err error) {
	target := currentUser()
	if o.User != nil {
		target = o.User.UID
	}
	if o.Sandbox != nil {
		state = o.Sandbox.confine(target)
		if state.ABI == 0 && o.Sandbox.Required {
			return state, requiredSandbox(state.Remark)
		}
	}
	if o.User != nil {
		if err := o.User.become(); err != nil {
			return state, err
		}
	}
	// Whoever changes the user loses this.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return state, fmt.Errorf("set the death signal: %w", err)
	}
	return state, nil
}

// become makes the calling process one of the user.
func (u *User) become() error {
	err := dropAmbient()
	if err == nil {
		err = syscall.Setgroups(u.Groups)
	}
	if err == nil {
		err = syscall.Setresgid(u.GID, u.GID, u.GID)
	}
	if err == nil {
		err = syscall.Setresuid(u.UID, u.UID, u.UID)
	}
	if err != nil {
		return fmt.Errorf("run as user %d: %w", u.UID, err)
	}
	return nil
}

// become makes this process the program. It returns only if that fails.
func (o *order) become() syscall.Errno {
	err := error(nil)
	if o.Dir != "" {
		err = syscall.Chdir(o.Dir)
	}
	if err == nil {
		err = syscall.Exec(o.Path, o.Args, o.Env) //nolint:gosec // what to run is up to the caller of Run
	}
	errno := syscall.EINVAL
	_ = errors.As(err, &errno)
	return errno
}

// launch is a launcher as its init sees it.
type launch struct {
	pipe *os.File
	done chan struct{}
	// Read these when done is closed.
	told bool
	last launched
}

// startLauncher starts a launcher for o, and returns its process number, which is the program's later.
func startLauncher(o order, stdio [3]uintptr, attributes *syscall.SysProcAttr) (pid int, l *launch, err error) {
	given, err := o.write()
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = given.Close() }()
	ours, theirs, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = theirs.Close() }()
	files := append(append([]uintptr{}, stdio[:]...), theirs.Fd(), given.Fd())
	process := &syscall.ProcAttr{Env: []string{}, Files: files, Sys: attributes}
	pid, err = syscall.ForkExec(ownImage, []string{launchName}, process) //nolint:gosec // this executable
	if err != nil {
		return 0, nil, errors.Join(err, ours.Close())
	}
	return pid, &launch{pipe: ours, done: make(chan struct{})}, nil
}

// follow takes in what the launcher tells until it is the program, or has ended, and calls begun when it is known
// what became of the sandbox.
func (l *launch) follow(begun func(Sandboxed)) {
	defer close(l.done)
	defer func() { _ = l.pipe.Close() }()
	stream := gob.NewDecoder(l.pipe)
	for {
		var said launched
		if stream.Decode(&said) != nil {
			return
		}
		if !l.told {
			begun(said.Sandbox)
		}
		l.told, l.last = true, said
	}
}

// refusal returns the answer about a program that the launcher did not become, and false if it did.
func (l *launch) refusal(status syscall.WaitStatus) (answer, bool) {
	if l == nil {
		return answer{}, false
	}
	<-l.done
	switch {
	case l.last.Refused != "":
		return answer{Kind: answerRefused, Sandbox: l.last.Sandbox, Reason: l.last.Refused}, true
	case l.last.Errno != 0:
		return answer{Kind: answerRefused, Sandbox: l.last.Sandbox, Errno: l.last.Errno}, true
	case !l.told && status.Exited():
		return answer{Kind: answerRefused, Reason: "its launcher ended without a report"}, true
	}
	return answer{}, false
}
