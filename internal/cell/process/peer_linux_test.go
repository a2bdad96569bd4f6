package process_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// guest returns the command of a client that asks the server at address.
func guest(t *testing.T, address string, environ ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), self)
	command.Env = append([]string{peerGuest + "=" + address}, environ...)
	return command
}

func said(t *testing.T, command *exec.Cmd) string {
	t.Helper()
	output, err := command.Output()
	require.NoError(t, err)
	return string(output)
}

const (
	own      = "true <nil>"
	stranger = "false <nil>"
)

// TestPeerIsOursByItsMark covers clients with the variable in their environment. The server runs in another process,
// from which no client descends.
func TestPeerIsOursByItsMark(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	host := exec.CommandContext(t.Context(), self)
	host.Env = []string{peerHost + "=1"}
	stdin, err := host.StdinPipe()
	require.NoError(t, err)
	stdout, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())
	defer func() {
		require.NoError(t, stdin.Close())
		require.NoError(t, host.Wait())
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	address := strings.TrimSpace(line)

	answer, err := ask(address, false)
	require.NoError(t, err)
	require.Equal(t, stranger, answer)
	require.Equal(t, stranger, said(t, guest(t, address)))
	require.Equal(t, stranger, said(t, guest(t, address, peerMark+"S=1")), "another variable")
	require.Equal(t, own, said(t, guest(t, address, peerMark+"=some-session")))

	cleaned := exec.CommandContext(t.Context(), "/bin/sh", "-c", `env -i "$@"; :`, "sh", peerGuest+"="+address, self)
	cleaned.Env = []string{"PATH=" + os.Getenv("PATH"), peerMark + "=some-session"}
	require.Equal(t, own, said(t, cleaned), "it comes of one that has the mark")
}

// TestPeerIsOursByItsParent covers clients that descend from the server's process. The server runs in the test's own
// process.
func TestPeerIsOursByItsParent(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	over := make(chan error, 1)
	go func() { over <- tellPeers(listener) }()
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		require.ErrorIs(t, <-over, net.ErrClosed)
	})
	address := listener.Addr().String()

	require.Equal(t, own, said(t, guest(t, address)))
	require.Equal(t, own, said(t, guest(t, address, peerGuestIPv6+"=1")), "its row is in another table")
	orphan := exec.CommandContext(t.Context(), "/bin/sh", "-c", `setsid "$@" & wait`, "sh", "env", "-i", peerGuest+"="+address, guest(t, "").Path)
	require.Equal(t, own, said(t, orphan))
	for _, ipv6 := range []bool{false, true} {
		answer, err := ask(address, ipv6)
		require.NoError(t, err)
		require.Equal(t, stranger, answer, "this process is no part of its own trees")
	}
}

// TestPeerWithCopies covers a connection of this process that a child has open, too, as each child has until it
// executes its program.
func TestPeerWithCopies(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	guest, err := net.Dial("tcp4", listener.Addr().String())
	require.NoError(t, err)
	conn, err := listener.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	copied, err := guest.(*net.TCPConn).File()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), "/bin/cat")
	child.ExtraFiles = []*os.File{copied}
	child.Env = []string{peerMark + "=some-session"}
	stdin, err := child.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	require.NoError(t, copied.Close())

	ours, err := fromGuest(conn)
	require.NoError(t, err)
	require.False(t, ours, "this process has it")
	require.NoError(t, guest.Close())
	ours, err = fromGuest(conn)
	require.NoError(t, err)
	require.True(t, ours, "only the child has it")
	require.NoError(t, stdin.Close())
	require.NoError(t, child.Wait())
}

// TestPeerThatIsGone covers a client that has closed its connection before PeerIsOurs is called.
func TestPeerThatIsGone(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	guest, err := net.Dial("tcp4", listener.Addr().String())
	require.NoError(t, err)
	conn, err := listener.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	require.NoError(t, guest.Close())
	require.Eventually(t, func() bool { // a child that another test is starting has the connection until it executes its program
		_, err = fromGuest(conn)
		return err != nil
	}, time.Minute, time.Millisecond)
	require.EqualError(t, err, "the program that opened the connection is gone")
}
