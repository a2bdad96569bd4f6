package treeinit

import (
	"errors"
	"syscall"
	"unsafe"
)

// A datagram with an address is sent by this process, on a copy of the caller's socket, like a connection.

// maxDatagram is the size of the largest datagram: twice what the buffer of a socket of this host holds by default.
const maxDatagram = 2 * 212_992

// The kernel's constants for messages.
const (
	sendDontWait = 0x40
	sendNoSignal = 0x4000
	sendNoCopy   = 0x4000000
)

// datagram is a message of the caller.
type datagram struct {
	address, size uint64
	flags         int
}

// send sends a message to an address.
func (c *call) send(descriptor int, message datagram, address uint64, length int) error {
	socket, err := c.socket(descriptor)
	if err != nil {
		return err
	}
	w := &waitingCall{call: c, ready: socket, held: []int{socket}}
	err = w.send(socket, message, address, length)
	if errors.Is(err, errWaits) {
		return c.wait(w)
	}
	w.release()
	return err
}

func (w *waitingCall) send(socket int, message datagram, address uint64, length int) error {
	to, err := w.address(address, length)
	if err == nil && familyOf(to) == syscall.AF_UNSPEC && len(to) >= inetEnd {
		err = w.allowAddress(append([]byte{syscall.AF_INET, 0}, to[inetPort:]...)) // as UDP takes it
	}
	if err == nil {
		to, err = w.judgeAddress(to)
	}
	if err != nil {
		return err
	}
	kind, err := syscall.GetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_TYPE)
	switch {
	case err != nil:
		return err
	case message.size > maxDatagram && kind != syscall.SOCK_STREAM:
		return syscall.EMSGSIZE
	}
	content := make([]byte, min(message.size, maxDatagram)) // a part is enough for a stream
	if err := w.copyMemory(message.address, content); err != nil {
		return err
	}
	if err := w.waits(); err != nil {
		return err
	}
	return w.sendTo(socket, content, message.flags, to)
}

// sendTo sends the content, and waits as the caller would.
func (w *waitingCall) sendTo(socket int, content []byte, flags int, to []byte) error {
	status, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(socket), syscall.F_GETFL, 0)
	if errno != 0 {
		return errno
	}
	waits := status&syscall.O_NONBLOCK == 0 && flags&sendDontWait == 0
	w.attempt = func() error {
		n, err := sendNow(socket, content, flags&^sendNoCopy|sendDontWait|sendNoSignal, to)
		switch {
		case err == nil:
			w.release() // before the caller goes on
			return w.returnNumber(n)
		case waits && err == syscall.EAGAIN: //nolint:errorlint // a number
			return errWaits
		}
		return err
	}
	w.isLate, w.size = w.limitOf(socket, syscall.EAGAIN), len(content)
	return w.attempt()
}

// sendNow makes the system call sendto. Its error is a syscall.Errno.
func sendNow(socket int, content []byte, flags int, to []byte) (int64, error) {
	first, target := unsafe.Pointer(&[1]byte{}), unsafe.Pointer(&[1]byte{}) //nolint:gosec // for empty ones
	if len(content) > 0 {
		first = unsafe.Pointer(&content[0]) //nolint:gosec // how the kernel takes it
	}
	if len(to) > 0 {
		target = unsafe.Pointer(&to[0]) //nolint:gosec // as above
	}
	n, _, errno := syscall.Syscall6(syscall.SYS_SENDTO, uintptr(socket), uintptr(first), uintptr(len(content)),
		uintptr(flags), uintptr(target), uintptr(len(to)))
	return int64(n), failure(errno) //nolint:gosec // a size
}
