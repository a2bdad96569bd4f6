package embedded

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestListensOnLoopbackOnly checks that nothing can be reached from outside: neither services nor metrics,
// profiles or membership. It is not parallel, because it would see the listeners of other tests.
func TestListensOnLoopbackOnly(t *testing.T) { //nolint:paralleltest // it looks at the whole process
	before := ownListeners(t)
	server := startServer(t, Options{})
	var opened []string
	for _, address := range ownListeners(t) {
		if !slices.Contains(before, address) {
			opened = append(opened, address)
		}
	}

	require.Len(t, opened, len(serviceNames())+1, "one for each service and the Web UI: %v", opened)
	require.Contains(t, opened, server.Address())
	require.Contains(t, opened, strings.TrimPrefix(server.UIURL(), "http://"))
	var ports []int
	for _, address := range opened {
		parsed, err := netip.ParseAddrPort(address)
		require.NoError(t, err)
		require.Equal(t, loopback, parsed.Addr().String(), "%s is open", address)
		ports = append(ports, int(parsed.Port()))
	}
	require.ElementsMatch(t, ports, server.Ports())
}

// TestReservedPortsAreKept checks that a reserved port is not given to other programs that ask for a free one,
// and that the server can listen on it.
func TestReservedPortsAreKept(t *testing.T) {
	t.Parallel()
	// Without the reservation, two of so many ports would almost certainly be equal.
	const reservations = 400
	taken := make(map[int]bool)
	for range reservations {
		number, release, err := reservePort(0)
		require.NoError(t, err)
		t.Cleanup(release)
		require.False(t, taken[number], "port %d was given out twice", number)
		taken[number] = true
	}
	for number := range taken {
		listen(t, number)
	}
}

// ownListeners returns the TCP addresses on which this process listens.
func ownListeners(t *testing.T) []string {
	t.Helper()
	own := ownSockets(t)
	var listeners []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(table)
		if os.IsNotExist(err) {
			continue // no IPv6
		}
		require.NoError(t, err)
		for _, line := range strings.Split(strings.TrimSpace(string(content)), "\n")[1:] {
			const local, state, inode, listening = 1, 3, 9, "0A"
			fields := strings.Fields(line)
			if fields[state] == listening && own["socket:["+fields[inode]+"]"] {
				listeners = append(listeners, kernelAddress(t, fields[local]))
			}
		}
	}
	return listeners
}

// ownSockets returns the sockets of this process by the kernel's names.
func ownSockets(t *testing.T) map[string]bool {
	t.Helper()
	descriptors, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	sockets := make(map[string]bool)
	for _, descriptor := range descriptors {
		if name, err := os.Readlink(descriptor); err == nil { // the descriptor may be closed by now
			sockets[name] = true
		}
	}
	return sockets
}

// kernelAddress parses "0100007F:1F90": 32-bit words in the byte order of a little-endian host.
func kernelAddress(t *testing.T, text string) string {
	t.Helper()
	host, port, found := strings.Cut(text, ":")
	require.True(t, found)
	ip, err := hex.DecodeString(host)
	require.NoError(t, err)
	for word := range slices.Chunk(ip, 4) {
		slices.Reverse(word)
	}
	number, err := strconv.ParseUint(port, 16, 16)
	require.NoError(t, err)
	return net.JoinHostPort(net.IP(ip).String(), fmt.Sprint(number))
}
