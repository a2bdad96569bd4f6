package process_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/process"
)

// visits counts the programs that have reached a server.
type visits struct {
	mutex sync.Mutex
	count int
	group sync.WaitGroup
}

// serve accepts connections until the end of the test.
func (v *visits) serve(t *testing.T, network, address string) net.Addr {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), network, address)
	require.NoError(t, err)
	v.group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			v.group.Go(func() {
				defer func() { _ = conn.Close() }()
				if text, _ := io.ReadAll(conn); string(text) == reached {
					v.add()
				}
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr()
}

// listenTo counts the datagrams that arrive at a port, until the end of the test.
func (v *visits) listenTo(t *testing.T, port int) {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", fmt.Sprint("127.0.0.1:", port))
	require.NoError(t, err)
	v.group.Go(func() {
		for buffer := make([]byte, 100); ; {
			n, _, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if string(buffer[:n]) == reached {
				v.add()
			}
		}
	})
	t.Cleanup(func() { _ = conn.Close() })
}

func (v *visits) add() {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.count++
}

func (v *visits) any() bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.count > 0
}

// newServers starts servers that programs may reach, and others that they may not.
func newServers(t *testing.T, s site) (at servers, open, closed *visits) {
	t.Helper()
	open, closed = &visits{}, &visits{}
	port := func(v *visits) int { return v.serve(t, "tcp", "[::]:0").(*net.TCPAddr).Port } //nolint:forcetypeassert // it is one
	at = servers{
		Open: port(open), Closed: port(closed), OpenPath: filepath.Join(s.workspace, "open"), ClosedPath: filepath.Join(s.root, "closed"),
		Name: "claudeops-test-" + filepath.Base(s.root) + t.Name(),
	}
	open.serve(t, "unix", at.OpenPath)
	closed.serve(t, "unix", at.ClosedPath)
	closed.serve(t, "unix", "@"+at.Name)
	closed.listenTo(t, at.Closed)
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, address := range addresses {
		if ip, is := address.(*net.IPNet); is && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			at.Host = ip.IP.To4()
		}
	}
	return at, open, closed
}

// connecting returns a sandbox whose programs may reach the open servers only.
func (s site) connecting(at servers) *process.Sandbox {
	sandbox := s.judged()
	sandbox.Opens.Addresses = []process.Address{{Here: true, Port: at.Closed, Reason: "the supervisor's"}}
	sandbox.Opens.Sockets = []string{at.ClosedPath}
	return sandbox
}

// attempt runs an attempt in a sandbox, and returns what it printed.
func (s site) attempt(t *testing.T, sandbox *process.Sandbox, at servers, name string) string {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	encoded, err := json.Marshal(at)
	require.NoError(t, err)
	spec := shell(t, process.ModeSubreaper, "cd "+s.workspace+" && exec "+program)
	spec.Env = append(spec.Env, connectAttempt+"="+name, connectServers+"="+string(encoded))
	spec.Sandbox = sandbox
	_, printed := run(t, t.Context(), spec)
	return strings.TrimSpace(printed)
}

// TestConnections runs programs that try to reach a forbidden server, by each family, spelling and race. They reach it only without
// judging. The restriction of abstract names does not need it.
func TestConnections(t *testing.T) {
	t.Parallel()
	requireConnects(t)
	for name := range connectAttempts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, judge := range []bool{true, false} {
				s := newSite(t)
				at, _, closed := newServers(t, s)
				if at.Host == nil && name == "the host's address" {
					t.Skip("this host has the loopback device only")
				}
				sandbox := s.connecting(at)
				if !judge {
					sandbox.Opens = nil
				}
				printed := s.attempt(t, sandbox, at, name)
				switch {
				case strings.HasPrefix(name, "the first bytes"):
					require.Equal(t, unix.EOPNOTSUPP.Error(), printed)
				case strings.Contains(name, "abstract") && !judge:
				case judge:
					require.Contains(t, printed, unix.EACCES.Error())
				default:
					require.Equal(t, "<nil>", printed)
					require.Eventually(t, closed.any, patience, patience/1000)
				}
				if judge {
					require.False(t, closed.any())
				}
			}
		})
	}
}

// requireConnects skips the test where connections are not judged. The kernel of CI lets us.
func requireConnects(t testing.TB) {
	t.Helper()
	requireOpens(t)
	found, err := process.ProbeSandbox(t.Context(), process.ModeAuto, &process.Sandbox{Opens: &process.Opens{}}, nil)
	require.NoError(t, err)
	if !found.Connects {
		require.Empty(t, os.Getenv("CI"), found)
		t.Skip(found)
	}
}
