package process_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// host listens on a Unix socket, and passes every connection to the function meet until the test ends.
func host(t *testing.T, meet func(*net.UnixConn)) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	go func() {
		for {
			conn, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			meet(conn)
			_ = conn.Close()
		}
	}()
	return path
}

// visitor returns a script, run in a tree, that visits a socket with the given variables.
func visitor(t *testing.T, mode process.Mode, script, path string) process.Spec {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	spec := shell(t, mode, script)
	spec.Env = append(spec.Env, "SELF="+self, visitTo+"="+path)
	return spec
}

// TestTreeKnowsItsConnections covers a program of a tree, one of another tree, and one of none.
func TestTreeKnowsItsConnections(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, mode process.Mode) {
		begun := make(chan process.Tree, 1)
		var tree process.Tree
		known := false
		path := host(t, func(conn *net.UnixConn) {
			if !known {
				tree, known = <-begun, true
			}
			member, err := tree.Opened(conn)
			_, _ = fmt.Fprintln(conn, member, err)
		})
		script := `"$SELF"; sh -c '"$SELF"; :'`
		want := "true <nil>\ntrue <nil>\n"
		if mode != process.ModeGroup { // in this mode nothing adopts orphans
			script += fmt.Sprintf(`; export %s=$PPID; mkfifo wait; (setsid "$SELF" >wait &); cat wait`, visitUnder)
			want += "true <nil>\n"
		}
		first := visitor(t, mode, script, path)
		first.Dir = t.TempDir()
		first.Started = func(tree process.Tree) { begun <- tree }
		_, said := run(t, t.Context(), first)
		require.Equal(t, want, said)

		_, said = run(t, t.Context(), visitor(t, mode, `"$SELF"`, path))
		require.Equal(t, stranger+"\n", said, "another tree")
		conn, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
		require.NoError(t, err)
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Equal(t, stranger+"\n", string(answer), "this process, which started the tree")
		require.NoError(t, conn.Close())
	})
}

// TestTreeDoesNotKnowTheConnectionsOfThoseThatEnded covers a program that leaves its connection to its child. Its
// parent does not wait for it, so its number is still in the tree.
func TestTreeDoesNotKnowTheConnectionsOfThoseThatEnded(t *testing.T) {
	t.Parallel()
	inEveryTree(t, func(t *testing.T, mode process.Mode) {
		begun, answers := make(chan process.Tree, 1), make(chan string, 1)
		path := host(t, func(conn *net.UnixConn) {
			answers <- afterTheEnd(<-begun, conn)
		})
		spec := visitor(t, mode, visitAndLeave+`=1 "$SELF" & exec cat`, path)
		spec.Started = func(tree process.Tree) { begun <- tree }
		input, release := io.Pipe()
		spec.Stdin = input
		answer := make(chan string, 1)
		go func() {
			answer <- <-answers
			_ = release.Close()
		}()
		run(t, t.Context(), spec)
		require.Equal(t, stranger, <-answer)
	})
}

// afterTheEnd waits until the process that opened a connection has ended, and asks a tree about it.
func afterTheEnd(tree process.Tree, conn *net.UnixConn) string {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err.Error()
	}
	var peer *unix.Ucred
	if failure := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); failure != nil || err != nil {
		return fmt.Sprint(failure, err)
	}
	for {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", peer.Pid))
		if (err != nil || len(threads) == 1) && gone(int(peer.Pid)) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	member, err := tree.Opened(conn)
	return fmt.Sprint(member, " ", err)
}
