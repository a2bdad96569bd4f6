package proctable

import (
	"errors"
	"os"
	"syscall"
	"time"
)

const (
	// RefusedPatience is the time to wait for the end of processes that this process may not kill. Such processes
	// belong to another user, and sometimes end on their own.
	RefusedPatience = 5 * time.Second
	// DeathPatience is the time to wait for processes to die after SIGKILL. Some processes first wait for a disk, or
	// for CPU time on a busy machine.
	DeathPatience = 30 * time.Second
	// ScanPause is the longest pause between two scans of /proc. A scan takes milliseconds.
	ScanPause = 100 * time.Millisecond
)

// Remains counts the processes that were still alive at the latest call of Kill.
type Remains struct {
	Living int
	// Refused counts the living processes that this process may not kill.
	Refused int
}

// Hopeless reports whether the caller should stop waiting for the end of the processes. The parameter waited is the
// time that has passed. If this process may not kill any of the living processes, the limit is the parameter patience.
// Otherwise the limit is DeathPatience.
func (r Remains) Hopeless(waited, patience time.Duration) bool {
	return waited > DeathPatience || waited > patience && r.Refused > 0 && r.Refused == r.Living
}

// Kill kills the processes of entries. The result counts those of them that were still alive before.
func Kill(entries []Entry) (left Remains) {
	for _, entry := range entries {
		// Kill zombies, too. A process is shown as a zombie as soon as its first thread has ended, but its other
		// threads can still run.
		refused := entry.kill()
		if entry.Zombie {
			continue
		}
		left.Living++
		if refused {
			left.Refused++
		}
	}
	return left
}

// EndDescendants kills the descendants of root until none is alive, or until Hopeless returns true. It returns the
// number of descendants that are still alive.
func EndDescendants(root int) (survivors int) {
	began := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, ScanPause) {
		left := Kill(Descendants(All(), root))
		if left.Living == 0 || left.Hopeless(time.Since(began), RefusedPatience) {
			return left.Living
		}
		time.Sleep(pause)
	}
}

// kill sends SIGKILL to the process of e. If that process has ended, kill does nothing, even if another process has the
// same number now. The result reports whether the kernel refused the signal.
func (e Entry) kill() (refused bool) {
	handle, err := pidfdOpen(e.PID)
	if err == nil {
		defer func() { _ = syscall.Close(handle) }()
	}
	if now, gone := Find(e.PID); gone != nil || now.Started != e.Started {
		return false
	}
	if err == nil {
		err = pidfdKill(handle)
	}
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		err = syscall.Kill(e.PID, syscall.SIGKILL) // a kernel, or a sandbox around this process, without pidfds
	}
	return errors.Is(err, os.ErrPermission)
}

// System call numbers that are missing in package syscall. They are the same on amd64 and arm64.
const (
	sysPidfdSendSignal = 424
	sysPidfdOpen       = 434
)

// pidfdOpen returns a descriptor of the process. Unlike the process number, the descriptor never belongs to another
// process.
func pidfdOpen(pid int) (int, error) {
	descriptor, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(pid), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(descriptor), nil
}

// pidfdKill sends SIGKILL to the process of a descriptor.
func pidfdKill(descriptor int) error {
	_, _, errno := syscall.Syscall6(sysPidfdSendSignal, uintptr(descriptor), uintptr(syscall.SIGKILL), 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
