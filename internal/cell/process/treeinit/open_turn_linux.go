package treeinit

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// One thread receives the calls and judges them, one after the other: the kernel wakes every thread that waits for a
// call, so a second one would double what a call costs. A standby looks whether a call takes long, such as one of a
// network file system. Then it receives the next calls, and the other thread ends with its call.

const (
	// standbyPause is the time between two looks of the standby. After a pause without a call it sleeps until the next
	// one.
	standbyPause = 2 * time.Millisecond
	// maxLate limits the threads with calls that take long. Further calls wait in the kernel.
	maxLate = 64
)

// turn says which call is judged by the thread that receives calls.
type turn struct {
	// state is twice the number of the calls so far, and 1 more while the receiving thread judges the last of them.
	state atomic.Uint64
	// late counts the threads that judge a call without receiving others.
	late atomic.Int32
	// resting reports that the standby waits for wake.
	resting atomic.Bool
	wake    chan struct{}
}

// answerFirst answers calls on the first thread.
func (a *answerer) answerFirst() {
	runtime.LockOSThread() // never unlocked: the thread has the agent's rights to files
	if err := a.becomeAgent(); err != nil {
		_ = syscall.Close(a.listener) // the calls fail
		return
	}
	go a.standBy()
	a.receive()
}

// receive receives and judges calls, until the tree has ended or the standby receives them.
func (a *answerer) receive() {
	for {
		asked, received := a.next()
		if !received {
			return
		}
		judging := a.turn.state.Load() + 3 //nolint:mnd // one more call, which is judged
		a.turn.state.Store(judging)
		if a.turn.resting.Load() && a.turn.resting.CompareAndSwap(true, false) {
			a.turn.wake <- struct{}{}
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
	time.Sleep(standbyPause) // most trees of a single command have ended by then
	runtime.LockOSThread()   // as above
	if err := a.becomeAgent(); err != nil {
		return
	}
	for seen := a.turn.state.Load(); ; {
		time.Sleep(standbyPause)
		state := a.turn.state.Load()
		isJudged := state&1 == 1
		switch {
		case state != seen:
			seen = state
		case !isJudged:
			a.turn.rest(state)
		case a.turn.late.Load() < maxLate && a.turn.state.CompareAndSwap(state, state-1):
			a.turn.late.Add(1)
			go a.standBy()
			a.receive()
			return
		}
	}
}

// rest waits for the call after the one of a state.
func (t *turn) rest(state uint64) {
	t.resting.Store(true)
	if t.state.Load() != state && t.resting.CompareAndSwap(true, false) {
		return
	}
	<-t.wake
}
