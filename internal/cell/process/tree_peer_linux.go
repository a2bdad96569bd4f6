package process

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/cell/process/proctable"
)

// newTree returns the tree whose root has the process number pid. The root must not be reaped yet. If /proc does not
// show the root, the tree has no members.
func newTree(pid int) Tree {
	root, err := proctable.Find(pid)
	if err != nil {
		return Tree{PID: pid}
	}
	return Tree{PID: pid, started: root.Started}
}

// Opened reports whether a process of the tree has opened a connection to a Unix socket of this process. The kernel
// tells which process that was, in the numbers of this process's namespace. The process must still run, because after
// its end another process can get its number. Kernels before 6.5 cannot tell whether it still runs.
func (t Tree) Opened(conn syscall.Conn) (bool, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false, err
	}
	member := false
	var failure error
	err = raw.Control(func(descriptor uintptr) { member, failure = t.opened(int(descriptor)) })
	if err := errors.Join(err, failure); err != nil {
		return false, fmt.Errorf("look for the program that opened a connection: %w", err)
	}
	return member, nil
}

func (t Tree) opened(socket int) (bool, error) {
	if err := proctable.Check(); err != nil {
		return false, err
	}
	peer, err := unix.GetsockoptUcred(socket, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return false, err
	}
	handle, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	switch {
	case errors.Is(err, unix.ENOPROTOOPT): // an old kernel
		return t.holds(int(peer.Pid)), nil
	case err != nil:
		return false, errors.Join(errPeerGone, err)
	}
	defer func() { _ = unix.Close(handle) }()
	return t.holds(int(peer.Pid)) && running(handle), nil
}

// holds reports whether the process with the number pid is in the tree. Another user namespace or PID namespace within
// the tree makes no difference.
func (t Tree) holds(pid int) bool {
	entry, err := proctable.Find(pid)
	for err == nil && entry.PID != t.PID {
		entry, err = parentOf(entry)
	}
	return err == nil && t.started != 0 && entry.Started == t.started
}

// errNoParent means that the walk along the parents has left the tree.
var errNoParent = errors.New("the process has no parent here")

// parentOf returns the parent of a process. The parent can end in the meantime, and another process can get its number.
// So parentOf checks afterwards that the process still has this parent.
func parentOf(child proctable.Entry) (proctable.Entry, error) {
	for {
		if child.Parent == 0 {
			return proctable.Entry{}, errNoParent
		}
		parent, failure := proctable.Find(child.Parent)
		again, err := proctable.Find(child.PID)
		switch {
		case err != nil || again.Started != child.Started:
			return proctable.Entry{}, errPeerGone
		case again.Parent == child.Parent:
			return parent, failure
		}
		child = again
	}
}

// running reports whether the process of a handle has not ended.
func running(handle int) bool {
	state := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}} //nolint:gosec // a descriptor
	for {
		ended, err := unix.Poll(state, 0)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && ended == 0
		}
	}
}
