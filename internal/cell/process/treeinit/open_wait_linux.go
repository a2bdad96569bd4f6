package treeinit

import (
	"errors"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// A call that waits for somebody else, for the other end of a pipe or of a connection, occupies no thread. One thread
// tries all of them again and again, so their number has no limit of its own: each is a thread of the tree that waits,
// with a few descriptors here.

// errWaits means that the call is among those that wait.
var errWaits = errors.New("waits")

const (
	// shortPause is the time between two attempts at a call about which the kernel says nothing, such as the opening of
	// a named pipe, and longPause that between two attempts at others. At longPause it is also looked whether the
	// caller still waits.
	shortPause = 2 * time.Millisecond
	longPause  = 20 * time.Millisecond
	// maxLooks limits the callers that are looked at in one round, in turn. With more calls, shortPause is longer.
	maxLooks = 100
	// heldShare is the part of this process's descriptors that waiting calls may hold. It needs others to answer, and
	// to end the tree.
	heldShare = 4
)

// waitingCall is a call that waits for somebody else.
type waitingCall struct {
	*call
	// ready is the descriptor that becomes writable when the next attempt will succeed; -1 if there is none.
	ready int
	// attempt tries once more. Its error is errWaits if the call still waits.
	attempt func() error
	// isLate returns the error with which the call ends, because its caller does not wait any longer; nil if it does.
	isLate func() error
	// held are the descriptors of the call; counted is their number when it began to wait.
	held    []int
	counted int
	// looked is the time of the last look at the caller.
	looked time.Time
}

// waitingCalls are the calls that wait.
type waitingCalls struct {
	mutex   sync.Mutex
	added   []*waitingCall
	running bool
	// held counts the descriptors of all calls.
	held int
	// bell is an eventfd, which ends a pause.
	bell int
}

// wait has a call wait, and closes its descriptors afterwards. It returns errWaits, or why that is not possible.
func (a *answerer) wait(each *waitingCall) error {
	w := &a.waiting
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.held+len(each.held) > maxDescriptors()/heldShare {
		each.release()
		return syscall.ENFILE
	}
	if !w.running {
		bell, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
		if errno != 0 {
			each.release()
			return errno
		}
		w.bell, w.running = int(bell), true
		go a.attend()
	}
	each.looked = time.Now()
	each.counted = len(each.held)
	w.held += each.counted
	w.added = append(w.added, each)
	_, _ = syscall.Write(w.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	return errWaits
}

// release closes the descriptors of the call.
func (w *waitingCall) release() {
	for _, descriptor := range w.held {
		_ = syscall.Close(descriptor)
	}
	w.held = nil
}

// end answers the call. It closes the descriptors before the caller goes on (see give).
func (w *waitingCall) end(err error) {
	w.release()
	w.answer(err)
}

// attend tries the calls that wait.
func (a *answerer) attend() {
	runtime.LockOSThread() // never unlocked: the thread has the agent's rights to files
	if err := a.becomeAgent(); err != nil {
		syscall.Exit(1) // nobody answers these calls; with this process ends the tree
	}
	var calls []*waitingCall
	for {
		ready := a.waiting.pause(calls)
		var kept, looked []*waitingCall
		looks, now := 0, time.Now()
		for at, each := range calls {
			look := looks < maxLooks && now.Sub(each.looked) >= longPause
			if look {
				looks++
				each.looked = now
			}
			switch over := (look || each.ready < 0 || ready[at]) && each.isOver(look); {
			case over:
				a.waiting.forget(each)
			case look:
				looked = append(looked, each)
			default:
				kept = append(kept, each)
			}
		}
		calls = a.waiting.with(append(kept, looked...))
	}
}

// forget no longer counts the descriptors of a call that has its answer.
func (w *waitingCalls) forget(each *waitingCall) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.held -= each.counted
}

// maxDescriptors returns how many descriptors this process may have.
func maxDescriptors() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<20))
}

// isOver tries a call once more. It reports whether the call has its answer.
func (w *waitingCall) isOver(look bool) bool {
	err := w.attempt()
	if errors.Is(err, errWaits) && look {
		if late := w.isLate(); late != nil {
			err = late
		}
	}
	if errors.Is(err, errWaits) {
		return false
	}
	w.end(err)
	return true
}

// with returns the calls with those that have been added since.
func (w *waitingCalls) with(calls []*waitingCall) []*waitingCall {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	calls = append(calls, w.added...)
	w.added = nil
	return calls
}

// pause waits until a call is added, a descriptor is ready, or the next attempt is due. It reports which descriptors
// are ready.
func (w *waitingCalls) pause(calls []*waitingCall) (ready []bool) {
	requests := make([]pollRequest, 1, len(calls)+1)
	requests[0] = pollRequest{descriptor: int32(w.bell), wanted: pollIn} //nolint:gosec // a descriptor
	limit := longPause
	for _, each := range calls {
		if each.ready < 0 {
			limit = shortPause * time.Duration(1+len(calls)/maxLooks)
		}
		requests = append(requests, pollRequest{descriptor: int32(each.ready), wanted: pollOut}) //nolint:gosec // as above
	}
	timeout := syscall.NsecToTimespec(int64(limit))
	until := &timeout
	if len(calls) == 0 {
		until = nil
	}
	_, _, _ = syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&requests[0])), uintptr(len(requests)), //nolint:gosec // structs
		uintptr(unsafe.Pointer(until)), 0, 0, 0) //nolint:gosec // as above
	var count [8]byte
	_, _ = syscall.Read(w.bell, count[:])
	ready = make([]bool, len(calls))
	for at := range calls {
		ready[at] = requests[at+1].found != 0
	}
	return ready
}

// pollRequest is the kernel's struct pollfd.
type pollRequest struct {
	descriptor    int32
	wanted, found int16
}

const (
	pollIn  = 1
	pollOut = 4
)

// poll waits until a descriptor is ready, but not longer than pause. It reports whether it is.
func poll(descriptor int, wanted int16, pause time.Duration) bool {
	request := pollRequest{descriptor: int32(descriptor), wanted: wanted} //nolint:gosec // a descriptor
	timeout := syscall.NsecToTimespec(int64(pause))
	n, _, _ := syscall.Syscall6(syscall.SYS_PPOLL,
		uintptr(unsafe.Pointer(&request)), 1, uintptr(unsafe.Pointer(&timeout)), 0, 0, 0) //nolint:gosec // how the kernel takes structs
	return n == 1
}
