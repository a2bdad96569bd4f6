package process

import (
	"encoding/gob"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// init runs this process as an init or a launcher if Run has started it as one. In these roles it does not return.
//
// It runs before main and before most other packages are initialized, because this package imports only the standard
// library and golang.org/x/sys: Go initializes packages in the order of their paths, each as soon as its imports are
// initialized. In a program that links the Temporal server, initializing the other packages takes ten times as long as
// the init's own work. Like every init function it runs on the process's first thread.
//
// The process's name (argument zero) requests the role. Children would inherit a variable, but they do not inherit the
// name, so an agent's processes do not take the role by accident. If an agent starts a process with that name on
// purpose, the process has no control socket and ends.
func init() { //nolint:gochecknoinits // a role of this executable; it must run before packages that initialize slowly
	switch {
	case len(os.Args) == 2 && os.Args[0] == initName:
		runInit(Mode(os.Args[1]))
	case len(os.Args) == 1 && os.Args[0] == launchName:
		runLaunch()
	default:
		return
	}
	syscall.Exit(0) // not os.Exit, which takes a second under the race detector
}

// initProcess is the state of this process as the init of one tree.
type initProcess struct {
	mode     Mode
	control  *os.File
	reports  reporter
	parent   int
	wake     chan os.Signal
	commands chan command
	stdio    [3]uintptr

	program   int     // process number; 0 before the program runs
	launch    *launch // the program's launcher; nil without one
	ended     bool
	status    syscall.WaitStatus
	childless bool
}

// runInit runs one tree to its end. It prints nothing, because its standard output and error belong to the program.
func runInit(mode Mode) {
	// The kernel sends the program its death signal when the thread that started the program ends. So keep this thread.
	runtime.LockOSThread()
	in, err := newInit(mode)
	if err != nil {
		return
	}
	if j, err := readJob(); err != nil || !in.start(j) {
		return
	}
	debug.FreeOSMemory() // for example the memory of the decoded job
	go in.listen()
	in.report(in.run())
}

// newInit prepares this process for its role as an init.
func newInit(mode Mode) (*initProcess, error) {
	in := &initProcess{mode: mode, parent: os.Getppid(), wake: make(chan os.Signal, 1), commands: make(chan command)}
	// This process survives every signal that an agent can send it, except SIGKILL and SIGSTOP. It catches the signals
	// and does not ignore them, because the program would inherit ignored signals. Every signal wakes run, although run
	// needs only SIGCHLD.
	signal.Notify(in.wake, fatalSignals()...)
	if _, err := unix.GetsockoptInt(controlDescriptor, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return nil, err
	}
	if err := sealDescriptors(); err != nil {
		return nil, err
	}
	in.control = os.NewFile(controlDescriptor, "control")
	in.reports.to = gob.NewEncoder(in.control)
	if err := in.setAttributes(); err != nil {
		return nil, err
	}
	err := in.takeStdio()
	return in, err
}

// fatalSignals lists the signals that end or stop a Go program unless it catches them, and SIGCHLD. The Go runtime catches
// and drops all others. Catching all 64 here would take milliseconds.
func fatalSignals() []os.Signal {
	return []os.Signal{
		unix.SIGCHLD, unix.SIGCONT, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS,
		unix.SIGFPE, unix.SIGSEGV, unix.SIGTERM, unix.SIGSTKFLT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGSYS,
	}
}

// setAttributes gives this process the attributes that its mode needs.
func (in *initProcess) setAttributes() error {
	switch in.mode {
	case ModeNamespace:
		if os.Getpid() != 1 {
			return errors.New("not in a namespace of its own")
		}
		spreadNumbers()
	case ModeSubreaper:
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return err
		}
	case ModeAuto, ModeGroup:
		return errors.New("that mode has no init")
	default:
		return errors.New("unknown mode")
	}
	showName(initName)
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // the agent must not read or trace this process
}

// spreadNumbers sets the first process number of the namespace to a different number for each tree. Programs name files
// after their process number, and in shared directories such files must not collide. The number is also far from this
// process's number on the host. /proc shows the host's numbers, and an agent that passes one of them to kill should not
// hit a process of its own. Without the right to set the number, the numbers start at 1.
func spreadNumbers() {
	own, err := os.Readlink("/proc/self") // the host's number of this process
	limit, unknown := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil || unknown != nil {
		return
	}
	highest := number(strings.TrimSpace(string(limit)))
	if highest <= 0 {
		return
	}
	first := (number(own) + highest/2) % highest
	_ = os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(first)), 0)
}

// showName sets the name that tools show for this process. Otherwise they show "exe", the name of its file. If /proc is
// read-only, the name does not change.
func showName(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) }

// sealDescriptors prevents the program from inheriting the descriptors that this process has inherited.
func sealDescriptors() error {
	err := unix.CloseRange(controlDescriptor, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	open, err := os.ReadDir("/proc/self/fd") // an old kernel
	for _, entry := range open {
		if descriptor := number(entry.Name()); descriptor >= controlDescriptor {
			unix.CloseOnExec(descriptor)
		}
	}
	return err
}

// takeStdio moves the program's standard input, output and error to other descriptors, and puts /dev/null in their
// place. So this process cannot print to them, and can close them once the program has them.
func (in *initProcess) takeStdio() error {
	nothing, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = nothing.Close() }()
	for descriptor := range in.stdio {
		moved, err := unix.FcntlInt(uintptr(descriptor), unix.F_DUPFD_CLOEXEC, jobDescriptor+1)
		if err != nil {
			return err
		}
		in.stdio[descriptor] = uintptr(moved)
		if err := unix.Dup3(int(nothing.Fd()), descriptor, 0); err != nil {
			return err
		}
	}
	return nil
}

// start starts the program, and reports whether it runs. If the job has no program, start returns true and the program
// counts as ended.
func (in *initProcess) start(j job) bool {
	if j.Path == "" && !j.givesUpRights() {
		in.ended = true
		return true
	}
	err := in.fork(j)
	for _, descriptor := range in.stdio {
		_ = unix.Close(int(descriptor))
	}
	if err != nil {
		in.report(refusal(err))
		return false
	}
	return true
}

// fork starts the program, or the launcher that executes it.
func (in *initProcess) fork(j job) (err error) {
	attributes := &syscall.SysProcAttr{
		Setpgid:   true,
		Pdeathsig: syscall.SIGKILL, // kills the program if this process is killed
	}
	if !j.givesUpRights() {
		process := &syscall.ProcAttr{Dir: j.Dir, Env: j.Env, Files: in.stdio[:], Sys: attributes}
		in.program, err = syscall.ForkExec(j.Path, j.Args, process) //nolint:gosec // what to run is up to the caller of Run
		return err
	}
	if in.program, in.launch, err = startLauncher(j, in.stdio, attributes); err == nil {
		go in.launch.follow(func(state Sandboxed) { in.report(answer{Kind: answerLaunched, Sandbox: state}) })
	}
	return err
}

// refusal returns the answer for a program that could not be started.
func refusal(err error) answer {
	refused := answer{Kind: answerRefused, Errno: unix.EINVAL}
	_ = errors.As(err, &refused.Errno)
	return refused
}

// listen receives commands from the control socket and sends them to run. It closes the channel when the process that
// started this one ends.
func (in *initProcess) listen() {
	defer close(in.commands)
	for buffer := make([]byte, 1); ; {
		if n, err := in.control.Read(buffer); n == 0 || err != nil {
			return
		}
		in.commands <- command(buffer[0])
	}
}

// run executes commands until the program has ended or must be killed. Then it kills the rest of the tree, and returns
// the last answer.
func (in *initProcess) run() answer {
	patience := refusedPatience
	for killed := false; !in.ended && !killed; in.reap() {
		var orphaned bool
		select {
		case <-in.wake:
			orphaned = in.mode == ModeSubreaper && os.Getppid() != in.parent
		case c, open := <-in.commands:
			if c == commandInterrupt {
				in.interrupt()
			}
			killed, orphaned = c == commandKill, !open
		}
		if orphaned { // the process that started this one has ended, so nobody waits for the answer
			killed, patience = true, deathPatience
		}
	}
	survivors := in.endAll(patience)
	if !in.ended {
		return answer{Kind: answerGivenUp, Survivors: survivors}
	}
	if refused, ok := in.launch.refusal(in.status); ok {
		return refused
	}
	return answer{Kind: answerEnded, Status: in.status, Survivors: survivors}
}

// interrupt sends SIGINT to the program and its group, and SIGCONT for processes that are stopped.
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

// endAll kills the whole tree, and returns the number of processes still alive. It waits up to patience for processes
// that it may not kill.
func (in *initProcess) endAll(patience time.Duration) (survivors int) {
	if in.mode == ModeNamespace {
		return in.endProgram()
	}
	began := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, scanPause) {
		in.reap()
		if in.childless {
			return 0
		}
		found := descendants(allProcesses(), os.Getpid())
		left := kill(found)
		if len(found) == 0 { // the children belong to another user, and /proc does not show them
			left = remains{living: 1, refused: 1}
		}
		if left.hopeless(time.Since(began), patience) {
			return left.living
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

// endProgram kills only the program. When this process ends, the kernel kills the rest of the namespace. It reports the
// end of this process only after that.
func (in *initProcess) endProgram() (survivors int) {
	for !in.ended {
		_ = syscall.Kill(in.program, syscall.SIGKILL)
		<-in.wake
		in.reap()
	}
	return 0
}

// report sends a to the process that started this one, if it still runs.
func (in *initProcess) report(a answer) { in.reports.send(a) }

// reporter sends answers. Several goroutines may use it at once.
type reporter struct {
	mu sync.Mutex
	to *gob.Encoder
}

func (r *reporter) send(a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.to.Encode(a)
}
