package process_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// TestTreeBeyondItsLimits runs programs that fork and that allocate without an end. The whole tree is killed.
func TestTreeBeyondItsLimits(t *testing.T) {
	t.Parallel()
	for script, c := range map[string]struct {
		limits process.Limits
		reason string
	}{
		"while :; do (trap '' INT; sleep 300) & done": {
			process.Limits{Processes: 40, Memory: 4 << 30}, "it had more than 40 processes at once",
		},
		"x=x; while :; do x=$x$x; done": {process.Limits{Processes: 40, Memory: 64 << 20}, "it used more than 64 MiB of memory"},
	} {
		inEveryTree(t, func(t *testing.T, mode process.Mode) {
			spec := shell(t, mode, script)
			spec.Limits = c.limits
			exit, _ := run(t, t.Context(), spec)
			var limit *process.LimitError
			require.ErrorAs(t, exit.StoppedBy, &limit)
			require.Equal(t, c.reason, limit.Reason)
			require.Zero(t, exit.Survivors)
		})
	}
	spec := shell(t, process.ModeAuto, "sleep 0.2; exit 3")
	spec.Limits = process.Limits{Processes: 40, Memory: 1 << 30}
	exit, err := process.Run(t.Context(), spec)
	require.NoError(t, err)
	require.Equal(t, 3, exit.Code)
	require.NoError(t, exit.StoppedBy)
}

// TestOfflineSandbox has a program connect to a listener on the loopback interface and to one with a path, and send a
// packet. Offline, it gets no socket; otherwise it gets one.
func TestOfflineSandbox(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	s := newSite(t)
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": s.root + "/socket"} {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		kind := map[string]string{
			"tcp": "S.SOCK_STREAM, 0, ('127.0.0.1', int('" + port(listener) + "'))", "unix": "S.SOCK_STREAM, 1, '" + address + "'",
		}[network]
		script := "import socket as S\ntype, local, to = " + kind +
			"\ns = S.socket(S.AF_UNIX if local else S.AF_INET, type); s.connect(to)\nS.socketpair()\nprint('connected')"
		for _, offline := range []bool{true, false} {
			inEveryTree(t, func(t *testing.T, mode process.Mode) {
				sandbox := s.sandbox()
				sandbox.Offline = offline
				exit, said := inside(t, mode, sandbox, "python3 -c \""+script+"\" 2>&1")
				if offline {
					require.NotZero(t, exit.Code)
					require.Contains(t, said, "Operation not permitted")
					return
				}
				require.Contains(t, said, "connected")
			})
		}
	}
}

func port(listener net.Listener) string {
	_, number, _ := net.SplitHostPort(listener.Addr().String())
	return number
}
