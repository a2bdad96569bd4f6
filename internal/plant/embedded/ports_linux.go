package embedded

import (
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// reservePort binds port (0 means any free port) on the loopback address without listening.
//
// Until release, Linux does not give the port to programs that ask for a free port. But a listener with SO_REUSEADDR,
// such as a listener of net.Listen, can also bind the port. So the server can listen on the port, and no program that
// asks for a free port gets it before.
func reservePort(port int) (number int, release func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("open a socket: %w", os.NewSyscallError("socket", err))
	}
	release = func() { _ = unix.Close(fd) }
	number, err = bindReusable(fd, port)
	if err != nil {
		release()
		return 0, nil, err
	}
	return number, release, nil
}

// bindReusable binds the socket fd to a port with SO_REUSEADDR, and returns the number of that port.
func bindReusable(fd, port int) (int, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	address := &unix.SockaddrInet4{Port: port, Addr: [4]byte(net.ParseIP(loopback).To4())}
	if err := unix.Bind(fd, address); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	ipv4, ok := bound.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("a loopback socket has the address %T: %w", bound, syscall.EAFNOSUPPORT)
	}
	return ipv4.Port, nil
}
