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
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/cell/process"
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
func newServers(t *testing.T, s site) (at servers, closed *visits) {
	t.Helper()
	open, closed := &visits{}, &visits{}
	port := func(v *visits) int { return v.serve(t, "tcp", "[::]:0").(*net.TCPAddr).Port }
	at = servers{
		Open: port(open), Closed: port(closed), OpenPath: filepath.Join(s.workspace, "open"), ClosedPath: filepath.Join(s.root, "closed"),
		Name: strings.ReplaceAll(filepath.Join(s.workspace, "open"), "/", "-"), // as long as the path
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
	return at, closed
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

// TestConnections runs programs that try to reach a forbidden server, by each family, spelling and race. They reach it
// only without judging. The restriction of abstract names does not need it.
func TestConnections(t *testing.T) {
	t.Parallel()
	requireConnects(t)
	for name := range connectAttempts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, judge := range []bool{true, false} {
				s := newSite(t)
				at, closed := newServers(t, s)
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

// TestConnectionsOfOthersWork runs programs that do nothing forbidden. With judging they find what they find without.
func TestConnectionsOfOthersWork(t *testing.T) {
	t.Parallel()
	requireConnects(t)
	for name := range connectScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := map[bool]string{}
			for _, judge := range []bool{false, true} {
				s := newSite(t)
				s.secretsIn(t)
				at, _ := newServers(t, s)
				sandbox := s.connecting(at)
				if !judge {
					sandbox.Opens = nil
				}
				found[judge] = s.attempt(t, sandbox, at, name)
			}
			t.Log(found[true])
			require.Equal(t, found[false], found[true])
		})
	}
}

// TestConnectionsToWhatRulesCover checks which addresses a rule is about, for whom, and what is told of it.
func TestConnectionsToWhatRulesCover(t *testing.T) {
	t.Parallel()
	requireConnects(t)
	s := newSite(t)
	at, _ := newServers(t, s)
	sandbox := s.judged()
	var mutex sync.Mutex
	told := map[string]bool{}
	perl, err := filepath.EvalSymlinks("/usr/bin/perl")
	require.NoError(t, err)
	sandbox.Opens.Addresses = []process.Address{
		{IP: [16]byte{10: 0xff, 11: 0xff, 12: 127, 13: 9}, Bits: 96 + 15, Reason: "a part of loopback"},
		{IP: [16]byte{10: 0xff, 11: 0xff, 12: 127, 13: 1, 15: 1}, Bits: 128, Port: at.Open, Reason: "one address"},
		{Here: true, Port: at.Closed, Except: []string{perl}, Reason: "not for everybody"},
	}
	sandbox.Opens.Refused = func(r process.Refused) {
		mutex.Lock()
		defer mutex.Unlock()
		if r.Connect { // a program may be refused files, too
			told[fmt.Sprint(r.Path, " ", filepath.Base(r.Program), " ", r.Connect, " ", r.Reason)] = true
		}
	}
	program, err := os.Executable()
	require.NoError(t, err)
	script := `use Socket; for (@ARGV) { my ($h, $p) = split /,/; socket(S, PF_INET, SOCK_STREAM, 0);
		print "$h ", connect(S, sockaddr_in($p, inet_aton($h))) ? "yes" : $!, "\n" }`
	ask := `perl -e '` + script + `' 127.9.1.1,%[1]d 127.8.255.255,%[1]d 127.10.0.1,%[1]d 127.9.1.1,53 127.1.0.1,%[1]d 127.1.0.2,%[1]d 127.1.0.1,%[2]d`
	_, printed := inside(t, process.ModeSubreaper, sandbox, fmt.Sprintf(ask, at.Open, at.Closed))
	require.Equal(t, `127.9.1.1 Permission denied
127.8.255.255 Permission denied
127.10.0.1 yes
127.9.1.1 Connection refused
127.1.0.1 Permission denied
127.1.0.2 yes
127.1.0.1 yes
`, printed)
	require.Contains(t, s.attempt(t, sandbox, at, "IPv6"), unix.EACCES.Error())
	base := filepath.Base(program)
	want := map[string]bool{
		fmt.Sprintf("127.9.1.1:%d perl true a part of loopback", at.Open):              true,
		fmt.Sprintf("127.8.255.255:%d perl true a part of loopback", at.Open):          true,
		fmt.Sprintf("127.1.0.1:%d perl true one address", at.Open):                     true,
		fmt.Sprintf("[0:0:0:0:0:0:0:1]:%d %s true not for everybody", at.Closed, base): true,
	}
	heard := func() bool { mutex.Lock(); defer mutex.Unlock(); return len(told) >= len(want) } // the init tells it after the answer
	require.Eventually(t, heard, time.Minute, time.Millisecond)
	require.Equal(t, want, told)
}

// TestConnectionsOfAnotherUser checks that a server of this host sees the agent's user, although the init connects.
func TestConnectionsOfAnotherUser(t *testing.T) {
	t.Parallel()
	requireConnects(t)
	if os.Geteuid() != 0 {
		t.Skip("only the superuser starts programs of others")
	}
	root := openDir(t)
	path := filepath.Join(root, "socket")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	require.NoError(t, os.Chmod(path, 0o777)) //nolint:gosec // for the other user
	seen := make(chan *unix.Ucred, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			close(seen)
			return
		}
		raw, _ := conn.(*net.UnixConn).SyscallConn()
		_ = raw.Control(func(fd uintptr) {
			peer, _ := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
			seen <- peer
		})
		_ = conn.Close()
	}()
	require.NoError(t, os.Mkdir(filepath.Join(root, "closed"), 0o700))
	closed, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(root, "closed", "socket"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = closed.Close() })
	spec := shell(t, process.ModeSubreaper, `perl -e 'use Socket; for (@ARGV) { socket(S, PF_UNIX, SOCK_STREAM, 0);
		print connect(S, sockaddr_un($_)) ? "yes" : $!, "\n" }' `+path+" "+closed.Addr().String())
	spec.Sandbox, spec.User = &process.Sandbox{Required: true, Opens: &process.Opens{}}, otherUser()
	_, printed := run(t, t.Context(), spec)
	require.Equal(t, "yes\nPermission denied\n", printed)
	peer := <-seen
	require.Equal(t, []uint32{nobody, nobody}, []uint32{peer.Uid, peer.Gid})
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
