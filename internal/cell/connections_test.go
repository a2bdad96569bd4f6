package cell

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/cell/process"
)

// TestConnectionRules checks the rules for each kind of the supervisor's addresses.
func TestConnectionRules(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	place := guard.Place{Own: []string{"/var/lib/x[1]"}, Doors: []guard.Door{
		{Host: "127.0.0.1", Port: 7233}, {Host: "db.lan", Port: 5432}, {Host: dir, Port: 6432}, {Host: "192.0.2.7", Port: 443}, {Host: "::1", Port: 80},
	}}
	sockets, err := os.MkdirTemp("", "s") //nolint:usetesting // a socket's path must be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(sockets)) })
	post, err := OpenPost(sockets, nil, PostSession{ID: "s"}, nil, func(Entry) {})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, post.Close()) })
	opens := &process.Opens{}
	new(guards).connectionRules(t.Context(), opens, place, post)
	const reason = "it is the supervisor's own: agents do not ask it"
	require.Equal(t, []process.Address{
		{Port: 7233, Reason: reason},
		{Port: 5432, Reason: reason},
		{Here: true, Port: 6432, Reason: reason},
		{IP: netip.MustParseAddr("192.0.2.7").As16(), Bits: 128, Port: 443, Reason: reason},
		{IP: netip.MustParseAddr("::1").As16(), Bits: 128, Here: true, Port: 80, Reason: reason},
	}, opens.Addresses[len(metadataServices()):])
	require.Equal(t, 96+16, opens.Addresses[0].Bits)
	require.Equal(t, net.ParseIP("169.254.0.0").To16(), net.IP(opens.Addresses[0].IP[:]))
	require.Subset(t, opens.Sockets, []string{dir + "/.s.PGSQL.6432", `/var/lib/x\[1\]/**`, "**/tmux-*/**"})
	require.Len(t, opens.OwnSockets, 1)
}
