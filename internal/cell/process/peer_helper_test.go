package process_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/cell/process"
)

const (
	// peerHost makes the test binary a server that tells each client whether PeerIsOurs is true for it.
	peerHost = "PROCESS_TEST_PEER_HOST"
	// peerGuest makes the test binary a client of the address in its value. It prints the server's answer. With
	// peerGuestIPv6 it uses an IPv6 socket.
	peerGuest     = "PROCESS_TEST_PEER_GUEST"
	peerGuestIPv6 = "PROCESS_TEST_PEER_GUEST_IPV6"
	// peerMark is the variable that the server looks for in the environment of its clients.
	peerMark = "PROCESS_TEST_PEER_MARK"
)

// hostPeers runs the server. It prints its address, answers every client, and ends when its standard input closes.
func hostPeers() int {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	fmt.Println(listener.Addr())
	go func() { _ = tellPeers(listener) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// tellPeers sends every client of listener the result of PeerIsOurs for it.
func tellPeers(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		own, err := fromGuest(conn)
		_, _ = fmt.Fprint(conn, own, " ", err)
		_ = conn.Close()
	}
}

// fromGuest calls PeerIsOurs for a connection.
func fromGuest(conn net.Conn) (bool, error) {
	end := func(address net.Addr) process.Endpoint {
		tcp, _ := address.(*net.TCPAddr)
		return process.Endpoint{IP: [16]byte(tcp.IP.To16()), Port: uint16(tcp.Port)} //nolint:gosec // a port
	}
	return process.PeerIsOurs(end(conn.LocalAddr()), end(conn.RemoteAddr()), peerMark)
}

// askHost prints the answer of the server at address, and returns the exit code.
func askHost(address string) int {
	said, err := ask(address, os.Getenv(peerGuestIPv6) != "")
	if err != nil {
		said = err.Error()
	}
	fmt.Print(said)
	return 0
}

func ask(address string, ipv6 bool) (string, error) {
	conn, err := dial(address, ipv6)
	if err != nil {
		return "", err
	}
	said, err := io.ReadAll(conn)
	return string(said), errors.Join(err, conn.Close())
}

// dial connects to an IPv4 address. If ipv6 is set, it uses an IPv6 socket.
func dial(address string, ipv6 bool) (io.ReadCloser, error) {
	to, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return nil, err
	}
	if !ipv6 {
		return net.DialTCP("tcp4", nil, to)
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "socket"), unix.Connect(fd, &unix.SockaddrInet6{Port: to.Port, Addr: [16]byte(to.IP.To16())})
}
