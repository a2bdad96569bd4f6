package treeinit

import (
	"errors"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// A connection is made by this process, on a copy of the caller's socket and to the address that was judged. The caller
// could write another address into its memory meanwhile.

// maxAddress is the size of the kernel's struct sockaddr_storage.
const maxAddress = 128

// connect connects a socket of the caller.
func (c *call) connect(descriptor int, address uint64, length int) error {
	socket, err := c.socket(descriptor)
	if err != nil {
		return err
	}
	w := &waitingCall{call: c, ready: socket, held: []int{socket}}
	err = w.connect(socket, address, length)
	if errors.Is(err, errWaits) {
		return c.wait(w)
	}
	w.release()
	return err
}

func (w *waitingCall) connect(socket int, address uint64, length int) error {
	to, err := w.address(address, length)
	if err != nil {
		return err
	}
	if familyOf(to) == syscall.AF_UNIX && len(to) > unixPath {
		found, err := w.allowSocket(to)
		if err != nil {
			return err
		}
		if found.file >= 0 { // this very file, whatever its path leads to by now
			w.held = append(w.held, found.file)
			found.file = -1
			to = append(to[:unixPath:unixPath], ownDescriptor(w.held[1])+"\x00"...)
		}
		found.close()
		w.ready = -1 // a full queue
	} else if err := w.allowAddress(to); err != nil {
		return err
	}
	if err := w.waits(); err != nil {
		return err
	}
	return w.connectTo(socket, to)
}

// address reads the address of a host or of a socket from the caller's memory.
func (c *call) address(address uint64, length int) ([]byte, error) {
	if length < 0 || length > maxAddress {
		return nil, syscall.EINVAL
	}
	to := make([]byte, length)
	return to, c.copyMemory(address, to)
}

// socket returns a copy of a socket of the caller. The copy is the same socket under another number.
func (c *call) socket(descriptor int) (int, error) {
	if descriptor < 0 {
		return -1, syscall.EBADF
	}
	copied, err := c.copyDescriptor(descriptor)
	if err != nil {
		return -1, err
	}
	err = syscall.ENOTSOCK
	if modeOf(copied) == syscall.S_IFSOCK {
		err = c.waits() // otherwise another process may have the caller's number by now
	}
	if err != nil {
		_ = syscall.Close(copied)
		return -1, err
	}
	return copied, nil
}

func (c *call) copyDescriptor(descriptor int) (int, error) {
	const ofThread = syscall.O_EXCL
	handle, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(c.caller.thread), ofThread, 0)
	whole := errno == syscall.EINVAL // before Linux 6.9
	if whole {
		handle, _, errno = syscall.Syscall(sysPidfdOpen, uintptr(c.caller.group()), 0, 0)
	}
	if errno != 0 {
		return -1, errno
	}
	defer func() { _ = syscall.Close(int(handle)) }()
	var copied uintptr
	err := c.withCapability(capSysPtrace, func() error {
		copied, _, errno = syscall.Syscall(sysPidfdGetfd, handle, uintptr(descriptor), 0)
		return failure(errno)
	})
	if err != nil {
		return -1, err
	}
	if whole && !c.hasSame(descriptor, int(copied)) { // the thread has descriptors of its own
		_ = syscall.Close(int(copied))
		return -1, syscall.EACCES
	}
	return int(copied), nil
}

// hasSame reports whether the calling thread has the file of a descriptor of this process under the number descriptor.
func (c *call) hasSame(descriptor, own int) bool {
	theirs, err := readLinkAt(atFDCWD, c.caller.root()+"/fd/"+strconv.Itoa(descriptor))
	ours, unknown := readLinkAt(atFDCWD, ownDescriptor(own))
	return err == nil && unknown == nil && theirs == ours
}

// withCapability calls do while the calling thread has a capability, if this process may have it.
func (a *answerer) withCapability(number uint, do func() error) error {
	held, err := capget()
	if err != nil {
		return err
	}
	raised := held
	raised[number/32].effective |= raised[number/32].permitted & (1 << (number % 32)) //nolint:mnd // bits of a word
	if raised == held {
		return do()
	}
	if err := capset(raised); err != nil {
		return err
	}
	err = do()
	if failed := capset(held); failed != nil {
		syscall.Exit(1) // a thread with too many rights answers nothing; with it ends the tree
	}
	return err
}

// connectTo connects the socket, and waits as the caller would: not at all, until the connection is made or refused,
// until the caller gets a signal, or as long as its time limit says.
func (w *waitingCall) connectTo(socket int, to []byte) error {
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(socket), syscall.F_GETFL, 0)
	if errno != 0 {
		return errno
	}
	kind, err := syscall.GetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_TYPE)
	if err != nil {
		return err
	}
	if flags&syscall.O_NONBLOCK != 0 || kind != syscall.SOCK_STREAM && kind != syscall.SOCK_SEQPACKET {
		return connectNow(socket, to)
	}
	attempt := func() error { // only for a moment, since the caller's own descriptor has these flags, too
		_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, uintptr(socket), syscall.F_SETFL, flags|syscall.O_NONBLOCK)
		err := connectNow(socket, to)
		_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, uintptr(socket), syscall.F_SETFL, flags)
		return err
	}
	pending := attempt()
	if !isPending(pending, to) {
		return pending
	}
	w.attempt = func() error { // a connection that has begun is not begun again by that
		if err := attempt(); !isPending(err, to) {
			return err
		}
		return errWaits
	}
	limit, began := sendTimeout(socket), time.Now()
	w.isLate = func() error {
		switch {
		case limit > 0 && time.Since(began) >= limit:
			return pending
		case !w.valid() || w.caller.hasSignal():
			return syscall.EINTR
		}
		return nil
	}
	return errWaits
}

// isPending reports whether a connection is not made yet.
func isPending(err error, to []byte) bool {
	switch err { //nolint:errorlint // a number
	case syscall.EINPROGRESS, syscall.EALREADY:
		return true
	case syscall.EAGAIN:
		return familyOf(to) == syscall.AF_UNIX
	}
	return false
}

// sendTimeout returns the time limit of the socket for connections; 0 for none.
func sendTimeout(socket int) time.Duration {
	var limit syscall.Timeval
	size := unsafe.Sizeof(limit)
	_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, uintptr(socket), syscall.SOL_SOCKET, syscall.SO_SNDTIMEO,
		uintptr(unsafe.Pointer(&limit)), uintptr(unsafe.Pointer(&size)), 0) //nolint:gosec // how the kernel takes a struct
	if errno != 0 {
		return 0
	}
	return time.Duration(limit.Nano())
}

// connectNow makes the system call connect. Its error is a syscall.Errno.
func connectNow(socket int, to []byte) error {
	first := unsafe.Pointer(&[1]byte{}) //nolint:gosec // for an empty address
	if len(to) > 0 {
		first = unsafe.Pointer(&to[0]) //nolint:gosec // how the kernel takes an address
	}
	_, _, errno := syscall.Syscall(syscall.SYS_CONNECT, uintptr(socket), uintptr(first), uintptr(len(to)))
	return failure(errno)
}

// hasSignal reports whether a signal waits that the caller handles. The kernel would interrupt its call.
func (c *caller) hasSignal() bool {
	file := c.root() + "/status"
	mask := func(name string) uint64 {
		value, err := strconv.ParseUint(statusField(file, name), 16, 64)
		if err != nil {
			return 0
		}
		return value
	}
	return (mask("SigPnd:")|mask("ShdPnd:"))&mask("SigCgt:")&^mask("SigBlk:") != 0
}
