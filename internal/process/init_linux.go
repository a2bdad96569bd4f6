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

// init makes this process an init or a launcher when Run has started it as such. It does not return then.
//
// It runs before main, and before most packages are initialized: this package needs none but the standard library and
// golang.org/x/sys, and Go initializes packages in the order of their paths as soon as their imports are. In a program
// that links the Temporal server the rest takes ten times as long as the init's own work. It also runs on the process's
// first thread, as every init function does.
//
// An agent cannot make its processes take this role by accident: the request is the process's name, not a variable,
// which a child would inherit. A process that is started with that name on purpose holds nothing, and ends.
func init() { //nolint:gochecknoinits // a role of this executable, played before the packages that take long
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

// initProcess is this process as the init of one tree.
type initProcess struct {
	mode     Mode
	control  *os.File
	reports  reporter
	parent   int
	wake     chan os.Signal
	commands chan command
	stdio    [3]uintptr

	program   int     // its process number; 0 before it runs
	launch    *launch // how it was started; nil if without a launcher
	ended     bool
	status    syscall.WaitStatus
	childless bool
}

// runInit runs one tree to its end. It prints nothing: its standard files are the program's.
func runInit(mode Mode) {
	// The program's death signal is tied to the thread that starts it.
	runtime.LockOSThread()
	in, err := newInit(mode)
	if err != nil {
		return
	}
	if o, err := readOrder(); err != nil || !in.start(o) {
		return
	}
	debug.FreeOSMemory() // the order among it
	go in.listen()
	in.report(in.run())
}

// newInit sets this process up.
func newInit(mode Mode) (*initProcess, error) {
	in := &initProcess{mode: mode, parent: os.Getppid(), wake: make(chan os.Signal, 1), commands: make(chan command)}
	// What the agent sends, short of SIGKILL and SIGSTOP, this process survives. The signals are
	// caught, not ignored: a program would inherit that. Each wakes run, SIGCHLD for a good reason.
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

// fatalSignals lists those that end or stop a Go program that does not catch them, and SIGCHLD. The runtime itself catches
// all others and does nothing. To name them all would take milliseconds.
func fatalSignals() []os.Signal {
	return []os.Signal{
		unix.SIGCHLD, unix.SIGCONT, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS,
		unix.SIGFPE, unix.SIGSEGV, unix.SIGTERM, unix.SIGSTKFLT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGSYS,
	}
}

// setAttributes makes this process what its mode takes.
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

// spreadNumbers has the namespace count its processes from a number that no other tree starts at,
// and that is far from what the host counts them by. Programs leave files named after their
// number in directories that trees share; and an agent that mistakes a host's number, which is what
// /proc shows, for one of its own had better find nobody there. It does what it can: without the
// right to choose, numbers start at 1.
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

// showName sets the name that tools show for this process, which runs a file called exe. Where /proc
// cannot be written it stays as it is.
func showName(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) }

// sealDescriptors keeps from the program whatever this process has inherited.
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

// takeStdio moves the program's standard files out of the way and puts nothing in their place,
// so that this process neither holds them open nor prints to them.
func (in *initProcess) takeStdio() error {
	nothing, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = nothing.Close() }()
	for descriptor := range in.stdio {
		moved, err := unix.FcntlInt(uintptr(descriptor), unix.F_DUPFD_CLOEXEC, orderDescriptor+1)
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

// start starts the program, and reports whether it runs or there is none.
func (in *initProcess) start(o order) bool {
	if o.Path == "" && !o.givesUpRights() {
		in.ended = true
		return true
	}
	err := in.fork(o)
	for _, descriptor := range in.stdio {
		_ = unix.Close(int(descriptor))
	}
	if err != nil {
		in.report(refusal(err))
		return false
	}
	return true
}

// fork starts the program, or the launcher that becomes it.
func (in *initProcess) fork(o order) (err error) {
	attributes := &syscall.SysProcAttr{
		Setpgid:   true,
		Pdeathsig: syscall.SIGKILL, // should this process be killed after all
	}
	if !o.givesUpRights() {
		process := &syscall.ProcAttr{Dir: o.Dir, Env: o.Env, Files: in.stdio[:], Sys: attributes}
		in.program, err = syscall.ForkExec(o.Path, o.Args, process) //nolint:gosec // what to run is up to the caller of Run
		return err
	}
	if in.program, in.launch, err = startLauncher(o, in.stdio, attributes); err == nil {
		go in.launch.follow(func(state Sandboxed) { in.report(answer{Kind: answerLaunched, Sandbox: state}) })
	}
	return err
}

// refusal is the answer when the program could not be started.
func refusal(err error) answer {
	refused := answer{Kind: answerRefused, Errno: unix.EINVAL}
	_ = errors.As(err, &refused.Errno)
	return refused
}

// listen passes commands on, and ends with whoever gives them.
func (in *initProcess) listen() {
	defer close(in.commands)
	for buffer := make([]byte, 1); ; {
		if n, err := in.control.Read(buffer); n == 0 || err != nil {
			return
		}
		in.commands <- command(buffer[0])
	}
}

// run does what it is told until the program has ended, and then ends the rest.
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
		if orphaned { // nobody waits
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

// interrupt sends SIGINT to the program and its group, and wakes up those that are stopped.
func (in *initProcess) interrupt() {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGCONT} {
		if syscall.Kill(-in.program, sig) != nil { // it has moved to another group
			_ = syscall.Kill(in.program, sig)
		}
	}
}

// reap collects every child that has ended, also those that became ours when their parent ended.
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

// endAll kills everything, the program too if it still runs, and returns how much is left after
// patience with what it may not kill.
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
		if len(found) == 0 { // /proc does not show it: another user's
			left = remains{living: 1, refused: 1}
		}
		if left.hopeless(time.Since(began), patience) {
			return left.living
		}
		in.reapFor(pause)
	}
}

// reapFor collects children until there are none, or d has passed.
func (in *initProcess) reapFor(d time.Duration) {
	for over := time.After(d); !in.childless; in.reap() {
		select {
		case <-in.wake:
		case <-over:
			return
		}
	}
}

// endProgram kills the program only. The kernel does the rest when this process ends, and lets
// nobody know of its end before that is done.
func (in *initProcess) endProgram() (survivors int) {
	for !in.ended {
		_ = syscall.Kill(in.program, syscall.SIGKILL)
		<-in.wake
		in.reap()
	}
	return 0
}

// report sends a to whoever started this process, if there is still somebody.
func (in *initProcess) report(a answer) { in.reports.send(a) }

// reporter sends answers, from any goroutine.
type reporter struct {
	mu sync.Mutex
	to *gob.Encoder
}

func (r *reporter) send(a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.to.Encode(a)
}
