package treeinit

import (
	"errors"
	"io"
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
	answer, listener := j.giveUpRights()
	reports := os.NewFile(controlDescriptor, "launch")
	if answer.sendWith(reports, listener) != nil || answer.Kind != AnswerLaunched || j.Path == "" {
		return
	}
	_ = Answer{Kind: AnswerRefused, Sandbox: answer.Sandbox, Errno: j.exec()}.send(reports)
}

// giveUpRights enters the job's sandbox and changes to the job's user. The kind of the answer is AnswerLaunched, unless
// the change of the user fails, or a required sandbox or the judging of files is not available. The listener is the
// descriptor on which the kernel asks before files are opened; -1 without one.
func (j *Job) giveUpRights() (answer Answer, listener int) {
	listener = -1
	target := os.Geteuid()
	if j.User != nil {
		target = j.User.UID
	}
	var state Sandboxed
	if j.Sandbox != nil {
		state, listener = j.Sandbox.confine(target)
		if state.ABI == 0 && j.Sandbox.Required {
			return Answer{Kind: AnswerUnconfined, Sandbox: state}, -1
		}
		if j.Sandbox.Judged && (!state.Opens || !state.Connects) {
			return Answer{Kind: AnswerUnjudged, Sandbox: state}, -1
		}
	}
	if err := j.becomeUser(); err != nil {
		return Answer{Kind: AnswerRefused, Sandbox: state, Reason: err.Error()}, -1
	}
	return Answer{Kind: AnswerLaunched, Sandbox: state}, listener
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
	// A socket, because the launcher sends a descriptor.
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "launch"), pair[1]
	defer func() { _ = syscall.Close(theirs) }()
	// controlDescriptor, jobDescriptor
	files := append(append([]uintptr{}, stdio[:]...), uintptr(theirs), jobDescriptor)
	process := &syscall.ProcAttr{Env: []string{}, Files: files, Sys: attributes}
	pid, err = syscall.ForkExec(Image, []string{launchName}, process) //nolint:gosec // this executable
	if err != nil {
		return 0, nil, errors.Join(err, ours.Close())
	}
	return pid, &launch{pipe: ours, done: make(chan struct{})}, nil
}

// follow reads the launcher's reports until the launcher executes the program or ends. At the first report it calls the
// function begun with the sandbox of that report, and the descriptor on which the kernel asks before files are opened;
// -1 without one.
func (l *launch) follow(begun func(state Sandboxed, listener int)) {
	defer close(l.done)
	defer func() { _ = l.pipe.Close() }()
	received := &descriptors{socket: int(l.pipe.Fd()), found: -1}
	reports := NewAnswers(received)
	for {
		report, err := reports.Next()
		if err != nil {
			return
		}
		if l.last.Kind == AnswerNone {
			begun(report.Sandbox, received.found)
		}
		l.last = report
	}
}

// descriptors reads from a socket, and keeps the descriptor that comes with the content.
type descriptors struct{ socket, found int }

// Read implements io.Reader.
func (d *descriptors) Read(buffer []byte) (int, error) {
	control := make([]byte, syscall.CmsgSpace(4)) //nolint:mnd // one descriptor
	n, length, _, _, err := syscall.Recvmsg(d.socket, buffer, control, syscall.MSG_CMSG_CLOEXEC)
	for errors.Is(err, syscall.EINTR) {
		n, length, _, _, err = syscall.Recvmsg(d.socket, buffer, control, syscall.MSG_CMSG_CLOEXEC)
	}
	if err == nil && n == 0 {
		return 0, io.EOF
	}
	if messages, malformed := syscall.ParseSocketControlMessage(control[:length]); malformed == nil &&
		len(messages) == 1 {
		if found, malformed := syscall.ParseUnixRights(&messages[0]); malformed == nil && len(found) == 1 {
			d.found = found[0]
		}
	}
	return max(n, 0), err
}

// refusal returns the answer for a program that the launcher did not execute. If there is no launcher, or if the
// launcher executed the program, refusal returns false.
func (l *launch) refusal(status syscall.WaitStatus) (Answer, bool) {
	if l == nil {
		return Answer{}, false
	}
	<-l.done
	switch l.last.Kind {
	case AnswerRefused, AnswerUnconfined, AnswerUnjudged:
		return l.last, true
	case AnswerNone:
		return Answer{Kind: AnswerRefused, Reason: "its launcher ended without a report"}, status.Exited()
	case AnswerLaunched, AnswerEnded, AnswerGivenUp, AnswerFileRefused:
	}
	return Answer{}, false
}
