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

// launchName is the argument zero that makes this executable a launcher. An init starts the launcher, which gives up
// rights and then executes the program. It is a separate process, because Go cannot run code between fork and exec. The
// init cannot give up the rights itself. Otherwise it could no longer kill its tree, and its tree could kill it.
const launchName = "claudeops-launch"

// launchDescriptor is the pipe through which a launcher reports to its init. The job is at jobDescriptor.
const launchDescriptor = 3

// launched is a report of a launcher.
type launched struct {
	// Sandbox is the sandbox that the launcher has entered.
	Sandbox Sandboxed
	// Refused says why the rights could not be given up; the program was then not started.
	Refused string
	// Errno is the error of executing the program; 0 means none.
	Errno syscall.Errno
}

// runLaunch executes the program. It returns only if that fails, or if the job has no program.
func runLaunch() {
	runtime.LockOSThread() // Landlock and capabilities belong to the thread
	reports := gob.NewEncoder(os.NewFile(launchDescriptor, "launch"))
	j, err := readJob()
	if err != nil {
		return
	}
	unix.CloseOnExec(launchDescriptor)
	state, err := j.giveUpRights()
	if err != nil {
		_ = reports.Encode(launched{Sandbox: state, Refused: err.Error()})
		return
	}
	if reports.Encode(launched{Sandbox: state}) != nil || j.Path == "" {
		return
	}
	_ = reports.Encode(launched{Sandbox: state, Errno: j.exec()})
}

// giveUpRights enters the job's sandbox and changes to its user.
func (j *job) giveUpRights() (state Sandboxed, err error) {
	target := currentUser()
	if j.User != nil {
		target = j.User.UID
	}
	if j.Sandbox != nil {
		state = j.Sandbox.confine(target)
		if state.ABI == 0 && j.Sandbox.Required {
			return state, requiredSandbox(state.Remark)
		}
	}
	if j.User != nil {
		if err := j.User.become(); err != nil {
			return state, err
		}
	}
	// A change of the user resets the death signal, so set it again.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return state, fmt.Errorf("set the death signal: %w", err)
	}
	return state, nil
}

// become changes the user of the calling process to u.
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

// exec executes the program in this process. It returns only if that fails.
func (j *job) exec() syscall.Errno {
	err := error(nil)
	if j.Dir != "" {
		err = syscall.Chdir(j.Dir)
	}
	if err == nil {
		err = syscall.Exec(j.Path, j.Args, j.Env) //nolint:gosec // what to run is up to the caller of Run
	}
	errno := syscall.EINVAL
	_ = errors.As(err, &errno)
	return errno
}

// launch is the state that an init keeps about its launcher.
type launch struct {
	pipe *os.File
	done chan struct{} // closed when the launcher has reported for the last time
	// reported and last may be read only after done is closed.
	reported bool
	last     launched
}

// startLauncher starts a launcher for j and returns its process number. The program has the same number, because the
// launcher executes it.
func startLauncher(j job, stdio [3]uintptr, attributes *syscall.SysProcAttr) (pid int, l *launch, err error) {
	given, err := j.write()
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

// follow reads the launcher's reports until the launcher executes the program or ends. It calls begun with the sandbox
// of the first report.
func (l *launch) follow(begun func(Sandboxed)) {
	defer close(l.done)
	defer func() { _ = l.pipe.Close() }()
	stream := gob.NewDecoder(l.pipe)
	for {
		var report launched
		if stream.Decode(&report) != nil {
			return
		}
		if !l.reported {
			begun(report.Sandbox)
		}
		l.reported, l.last = true, report
	}
}

// refusal returns the answer for a program that the launcher did not execute. It returns false if the launcher executed
// the program, or if there is no launcher.
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
	case !l.reported && status.Exited():
		return answer{Kind: answerRefused, Reason: "its launcher ended without a report"}, true
	}
	return answer{}, false
}
