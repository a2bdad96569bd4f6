package treeinit

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/cell/process/proctable"
)

// initProcess is the state of this process as the init of one tree.
type initProcess struct {
	mode     Mode
	control  *os.File
	parent   int
	wake     chan os.Signal
	commands chan Command
	stdio    [3]uintptr

	program   int     // process number; 0 before the program runs
	launch    *launch // the program's launcher; nil without one
	ended     bool
	status    syscall.WaitStatus
	childless bool
}

// runInit runs one tree to its end. It prints nothing, because its standard output and error belong to the program.
func runInit(mode Mode) {
	// The kernel sends the program its death signal when the thread that started the program ends. So keep this
	// goroutine on its thread.
	runtime.LockOSThread()
	// With more than one processor, Go's scheduler looks 50,000 times a second for other work after each call that this
	// process answers. Its threads run in parallel in the kernel all the same.
	runtime.GOMAXPROCS(1)
	in, err := newInit(mode)
	if err != nil {
		return
	}
	if j, err := readJob(); err != nil || !in.start(j) {
		return
	}
	go in.listen()
	in.report(in.run())
}

// newInit prepares this process for its role as an init.
func newInit(mode Mode) (*initProcess, error) {
	in := &initProcess{mode: mode, parent: os.Getppid(), wake: make(chan os.Signal, 1), commands: make(chan Command)}
	// This process survives every signal that an agent can send, except SIGKILL and SIGSTOP. It catches the signals
	// instead of ignoring them, because the program would inherit ignored signals. Every signal wakes the method run,
	// although run needs only SIGCHLD.
	signal.Notify(in.wake, fatalSignals()...)
	if _, err := syscall.GetsockoptInt(controlDescriptor, syscall.SOL_SOCKET, syscall.SO_TYPE); err != nil {
		return nil, err
	}
	if err := sealDescriptors(); err != nil {
		return nil, err
	}
	in.control = os.NewFile(controlDescriptor, "control")
	if err := in.setAttributes(); err != nil {
		return nil, err
	}
	err := in.takeStdio()
	return in, err
}

// fatalSignals lists SIGCHLD and the signals that end or stop a Go program if the program does not catch these signals.
// The Go runtime catches and drops all other signals. Catching all 64 signals here would take milliseconds.
func fatalSignals() []os.Signal {
	return []os.Signal{
		syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGILL,
		syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGSEGV, syscall.SIGTERM,
		syscall.SIGSTKFLT, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGSYS,
	}
}

// setAttributes gives this process the attributes that its mode needs.
func (in *initProcess) setAttributes() error {
	switch in.mode {
	case Namespace:
		if os.Getpid() != 1 {
			return errors.New("not in a namespace of its own")
		}
		spreadNumbers()
	case Subreaper:
		if err := prctl(prSetChildSubreaper, 1); err != nil {
			return err
		}
	default:
		return errors.New("unknown mode")
	}
	showName(initName)
	return prctl(syscall.PR_SET_DUMPABLE, 0) // the agent must not read or trace this process
}

// spreadNumbers sets the first process number of the namespace to a different number for each tree. Programs name files
// after their process number, and in shared directories such files must not collide. The first number is also far from
// this process's number on the host. An agent sees the host's process numbers in /proc, and could pass one of them to
// kill. Because of the distance, the signal should not reach a process of the agent. Without the right to set the first
// number, the numbers start at 1.
func spreadNumbers() {
	own, err := os.Readlink("/proc/self") // the host's number of this process
	limit, unknown := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil || unknown != nil {
		return
	}
	number, err := strconv.Atoi(own)
	highest, unknown := strconv.Atoi(string(bytes.TrimSpace(limit)))
	if err != nil || unknown != nil || highest <= 0 {
		return
	}
	first := (number + highest/2) % highest
	_ = os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(first)), 0)
}

// showName sets the name that tools show for this process. By default these tools show "exe", the name of the process's
// file. If /proc is read-only, the name does not change.
func showName(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) }

// sealDescriptors prevents the program from inheriting the descriptors that this process has inherited.
func sealDescriptors() error {
	err := closeOnExecFrom(controlDescriptor)
	if err == nil {
		return nil
	}
	open, err := os.ReadDir("/proc/self/fd") // an old kernel
	for _, entry := range open {
		if descriptor, err := strconv.Atoi(entry.Name()); err == nil && descriptor >= controlDescriptor {
			syscall.CloseOnExec(descriptor)
		}
	}
	return err
}

// takeStdio moves the program's standard input, output and error to other descriptors, and opens /dev/null as this
// process's own. Afterwards this process cannot print into the program's output. It can close the moved descriptors as
// soon as the program has inherited them.
func (in *initProcess) takeStdio() error {
	nothing, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = nothing.Close() }()
	for descriptor := range in.stdio {
		moved, err := duplicate(descriptor, jobDescriptor+1)
		if err != nil {
			return err
		}
		in.stdio[descriptor] = uintptr(moved)
		if err := syscall.Dup3(int(nothing.Fd()), descriptor, 0); err != nil {
			return err
		}
	}
	return nil
}

// start starts the program, and reports whether the start succeeded. If the job has no program and needs no launcher,
// start returns true and the program counts as ended.
func (in *initProcess) start(j Job) bool {
	if j.Path == "" && !j.givesUpRights() {
		in.ended = true
		return true
	}
	err := in.fork(j)
	for _, descriptor := range append(in.stdio[:], jobDescriptor) {
		_ = syscall.Close(int(descriptor))
	}
	if err != nil {
		in.report(refusal(err))
		return false
	}
	return true
}

// fork starts the program, or the launcher that will execute the program.
func (in *initProcess) fork(j Job) (err error) {
	attributes := &syscall.SysProcAttr{
		Setpgid:   true,
		Pdeathsig: syscall.SIGKILL, // kills the program if this process is killed
	}
	if !j.givesUpRights() {
		process := &syscall.ProcAttr{Dir: j.Dir, Env: j.Env, Files: in.stdio[:], Sys: attributes}
		in.program, err = syscall.ForkExec(j.Path, j.Args, process) //nolint:gosec // what to run is up to the caller of Run
		return err
	}
	if in.program, in.launch, err = startLauncher(in.stdio, attributes); err == nil {
		go in.launch.follow(func(state Sandboxed, listener int) {
			if listener >= 0 {
				in.answer(listener, j)
			}
			in.report(Answer{Kind: AnswerLaunched, Sandbox: state})
		})
	}
	return err
}

// refusal returns the answer for a program that could not be started.
func refusal(err error) Answer {
	refused := Answer{Kind: AnswerRefused, Errno: syscall.EINVAL}
	_ = errors.As(err, &refused.Errno)
	return refused
}

// listen receives commands from the control socket, and passes them to the method run through a channel. When the
// process that started this one ends, listen closes the channel.
func (in *initProcess) listen() {
	defer close(in.commands)
	for buffer := make([]byte, 1); ; {
		if n, err := in.control.Read(buffer); n == 0 || err != nil {
			return
		}
		in.commands <- Command(buffer[0])
	}
}

// run executes commands until the program has ended or must be killed. Then it kills the rest of the tree, and returns
// the last answer.
func (in *initProcess) run() Answer {
	patience := proctable.RefusedPatience
	for killed := false; !in.ended && !killed; in.reap() {
		var orphaned bool
		select {
		case <-in.wake:
			orphaned = in.mode == Subreaper && os.Getppid() != in.parent
		case c, open := <-in.commands:
			if c == CommandInterrupt {
				in.interrupt()
			}
			killed, orphaned = c == CommandKill, !open
		}
		if orphaned { // the process that started this one has ended, so nobody waits for the answer
			killed, patience = true, proctable.DeathPatience
		}
	}
	survivors := in.endAll(patience)
	if !in.ended {
		return Answer{Kind: AnswerGivenUp, Survivors: survivors}
	}
	if refused, ok := in.launch.refusal(in.status); ok {
		return refused
	}
	return Answer{Kind: AnswerEnded, Status: in.status, Survivors: survivors}
}

// interrupt sends SIGINT to the program and its group. Then it sends SIGCONT, so that stopped processes receive the
// SIGINT, too.
func (in *initProcess) interrupt() {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGCONT} {
		if syscall.Kill(-in.program, sig) != nil { // the program has moved to another group
			_ = syscall.Kill(in.program, sig)
		}
	}
}

// reap reaps every child that has ended. Orphans of the tree are children of this process, too.
func (in *initProcess) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || pid == 0:
			in.childless = errors.Is(err, syscall.ECHILD)
			return
		case pid == in.program:
			in.ended, in.status = true, status
		}
	}
}

// endAll kills the whole tree, and returns the number of processes that are still alive. For processes that this init
// may not kill, endAll waits no longer than patience.
func (in *initProcess) endAll(patience time.Duration) (survivors int) {
	if in.mode == Namespace {
		return in.endProgram()
	}
	began := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, proctable.ScanPause) {
		in.reap()
		if in.childless {
			return 0
		}
		all := proctable.All()
		found := proctable.Descendants(all, os.Getpid())
		left := proctable.Kill(found)
		switch {
		case len(all) == 0: // not even this process is found, so /proc cannot be read now
			left = proctable.Remains{Living: 1}
		case len(found) == 0: // the children belong to another user, and /proc does not show them
			left = proctable.Remains{Living: 1, Refused: 1}
		}
		if left.Hopeless(time.Since(began), patience) {
			return left.Living
		}
		in.reapFor(pause)
	}
}

// reapFor reaps children until there are none, or until d has passed.
func (in *initProcess) reapFor(d time.Duration) {
	for over := time.After(d); !in.childless; in.reap() {
		select {
		case <-in.wake:
		case <-over:
			return
		}
	}
}

// endProgram kills the program, but not its descendants. When this process ends, the kernel first kills the rest of the
// namespace, and then reports the end of this process.
func (in *initProcess) endProgram() (survivors int) {
	for !in.ended {
		_ = syscall.Kill(in.program, syscall.SIGKILL)
		<-in.wake
		in.reap()
	}
	return 0
}

// report sends the answer a to the process that started this one, if that process still runs.
func (in *initProcess) report(a Answer) { _ = a.send(in.control) }
