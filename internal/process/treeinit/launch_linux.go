package treeinit

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// runLaunch gives up rights and executes the program. It returns only if one of these steps fails, or if the job has no
// program.
func runLaunch() {
	runtime.LockOSThread() // Landlock and capabilities belong to the thread
	j, err := readJob()
	if err != nil {
		return
	}
	_ = syscall.Close(jobDescriptor)
	syscall.CloseOnExec(controlDescriptor)
	answer := j.giveUpRights()
	reports := os.NewFile(controlDescriptor, "launch")
	if answer.send(reports) != nil || answer.Kind != AnswerLaunched || j.Path == "" {
		return
	}
	_ = Answer{Kind: AnswerRefused, Sandbox: answer.Sandbox, Errno: j.exec()}.send(reports)
}

// giveUpRights enters the job's sandbox and changes to the job's user. The kind of the answer is AnswerLaunched, unless
// the change of the user fails or a required sandbox is not available.
func (j *Job) giveUpRights() Answer {
	target := os.Geteuid()
	if j.User != nil {
		target = j.User.UID
	}
	var state Sandboxed
	if j.Sandbox != nil {
		state = j.Sandbox.confine(target)
		if state.ABI == 0 && j.Sandbox.Required {
			return Answer{Kind: AnswerUnconfined, Sandbox: state}
		}
	}
	if err := j.becomeUser(); err != nil {
		return Answer{Kind: AnswerRefused, Sandbox: state, Reason: err.Error()}
	}
	return Answer{Kind: AnswerLaunched, Sandbox: state}
}

// becomeUser changes the user of this process to the user of the job, if the job names a user. In any case it sets the
// death signal: the kernel kills this process when the init ends.
func (j *Job) becomeUser() error {
	if j.User != nil {
		if err := j.User.become(); err != nil {
			return err
		}
	}
	// A change of the user resets the death signal, so set it again.
	if err := prctl(syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL)); err != nil {
		return failed("set the death signal", err)
	}
	return nil
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
		return failed("run as user "+strconv.Itoa(u.UID), err)
	}
	return nil
}

// exec executes the program in this process. It returns only if the execution fails.
func (j *Job) exec() syscall.Errno {
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
	// last is the launcher's last report. Read it only after done is closed.
	last Answer
}

// startLauncher starts a launcher, which reads the same job as this init. It returns the launcher's process number. The
// program will have the same number, because the launcher's process executes the program.
func startLauncher(stdio [3]uintptr, attributes *syscall.SysProcAttr) (pid int, l *launch, err error) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = theirs.Close() }()
	files := append(append([]uintptr{}, stdio[:]...), theirs.Fd(), jobDescriptor) // controlDescriptor, jobDescriptor
	process := &syscall.ProcAttr{Env: []string{}, Files: files, Sys: attributes}
	pid, err = syscall.ForkExec(Image, []string{launchName}, process) //nolint:gosec // this executable
	if err != nil {
		return 0, nil, errors.Join(err, ours.Close())
	}
	return pid, &launch{pipe: ours, done: make(chan struct{})}, nil
}

// follow reads the launcher's reports until the launcher executes the program or ends. At the first report it calls the
// function begun with the sandbox of that report.
func (l *launch) follow(begun func(Sandboxed)) {
	defer close(l.done)
	defer func() { _ = l.pipe.Close() }()
	reports := NewAnswers(l.pipe)
	for {
		report, err := reports.Next()
		if err != nil {
			return
		}
		if l.last.Kind == AnswerNone {
			begun(report.Sandbox)
		}
		l.last = report
	}
}

// refusal returns the answer for a program that the launcher did not execute. If there is no launcher, or if the
// launcher executed the program, refusal returns false.
func (l *launch) refusal(status syscall.WaitStatus) (Answer, bool) {
	if l == nil {
		return Answer{}, false
	}
	<-l.done
	switch l.last.Kind {
	case AnswerRefused, AnswerUnconfined:
		return l.last, true
	case AnswerNone:
		return Answer{Kind: AnswerRefused, Reason: "its launcher ended without a report"}, status.Exited()
	case AnswerLaunched, AnswerEnded, AnswerGivenUp:
	}
	return Answer{}, false
}
