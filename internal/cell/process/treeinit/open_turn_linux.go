package treeinit

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// One thread receives the calls and judges them, one after the other: the kernel wakes every thread that waits for a
// call, so a second one would double what a call costs. A standby takes over when a call takes long, such as one of a
// network file system: then it receives the next calls, and the other thread ends with its call. A timer of the kernel
// wakes it, which calls set at most twice in a period: setting it costs as much as a small call.

const (
	// period is the time from a call to the standby's look, and to the next look if the call is judged then.
	period = 4 * time.Millisecond
	// maxLate limits the threads with calls that take long. Further calls wait in the kernel.
	maxLate = 64
)

// turn says which call is judged by the thread that receives calls.
type turn struct {
	// state is twice the number of the calls so far, and 1 more while the receiving thread judges the last of them.
	state atomic.Uint64
	// late counts the threads that judge a call without receiving others.
	late atomic.Int32
	// timer is a timerfd.
	timer      *os.File
	descriptor uintptr // of timer
}

// answerFirst answers calls on the first thread.
func (a *answerer) answerFirst() {
	runtime.LockOSThread() // never unlocked: the thread has the agent's rights to files
	err := a.becomeAgent()
	if err == nil {
		err = a.turn.makeTimer()
	}
	if err != nil {
		_ = syscall.Close(a.listener) // the calls fail
		return
	}
	go a.standBy()
	a.receive()
}

// receive receives and judges calls, until the tree has ended or the standby receives them.
func (a *answerer) receive() {
	var set time.Time // when a call has set the timer
	for {
		asked, received := a.next()
		if !received {
			return
		}
		judging := a.turn.state.Load() + 3 //nolint:mnd // one more call, which is judged
		a.turn.state.Store(judging)
		if now := time.Now(); now.Sub(set) > period/2 { // the standby looks when the state is there
			set = now
			a.turn.setTimer()
		}
		a.judge(asked)
		if !a.turn.state.CompareAndSwap(judging, judging-1) { // the standby receives calls
			a.turn.late.Add(-1)
			return
		}
	}
}

// next waits for a call. It returns false when the tree has ended.
func (a *answerer) next() (*notification, bool) {
	for {
		asked := &notification{}
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(a.listener), notifReceive,
			uintptr(unsafe.Pointer(asked))) //nolint:gosec // how the kernel takes a struct
		switch {
		case errno == 0:
			return asked, true
		case errno == syscall.EINTR:
		case errno == syscall.ENOENT && !poll(a.listener, 0, 0): // the caller has been killed
		default:
			return nil, false // the listener hangs up
		}
	}
}

// standBy receives the calls as soon as one takes long.
func (a *answerer) standBy() {
	var expirations [8]byte
	isAgent := false
	for seen := uint64(0); ; {
		if _, err := a.turn.timer.Read(expirations[:]); err != nil {
			return
		}
		state := a.turn.state.Load()
		isJudged := state&1 == 1
		switch {
		case !isJudged: // the next call sets the timer
		case state != seen || a.turn.late.Load() >= maxLate:
			seen = state
			a.turn.setTimer()
		default:
			if !isAgent {
				runtime.LockOSThread() // as above
				if err := a.becomeAgent(); err != nil {
					return
				}
				isAgent = true
			}
			if a.turn.state.CompareAndSwap(state, state-1) {
				a.turn.late.Add(1)
				go a.standBy()
				a.receive()
				return
			}
		}
	}
}

// timerSpec is the kernel's struct itimerspec.
type timerSpec struct{ interval, first syscall.Timespec }

// makeTimer makes the timer, which is not set.
func (t *turn) makeTimer() error {
	const monotonic = 1
	descriptor, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, monotonic,
		syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errno != 0 {
		return errno
	}
	t.descriptor, t.timer = descriptor, os.NewFile(descriptor, "timer")
	return nil
}

// setTimer has the timer expire after a period.
func (t *turn) setTimer() {
	spec := timerSpec{first: syscall.NsecToTimespec(int64(period))}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, t.descriptor, 0,
		uintptr(unsafe.Pointer(&spec)), 0, 0, 0) //nolint:gosec // how the kernel takes a struct
}
