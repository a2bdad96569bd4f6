package systemtest

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
)

// TestLocalServer locks a state directory, finds the announced server, releases the lock, and locks the directory
// again.
func TestLocalServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	requireNone := func() {
		t.Helper()
		_, err := supervisor.FindLocal(dir)
		require.ErrorIs(t, err, supervisor.ErrNoLocal)
		require.ErrorContains(t, err, dir)
	}
	requireNone()
	lock, err := supervisor.LockLocal(dir)
	require.NoError(t, err)
	requireNone() // the server is not announced yet
	_, err = supervisor.LockLocal(dir)
	require.ErrorIs(t, err, supervisor.ErrLocalInUse)

	server := supervisor.LocalServer{Address: "127.0.0.1:7233", WebUI: "http://127.0.0.1:8233", Token: lock.Token}
	require.NoError(t, lock.Announce(server))
	found, err := supervisor.FindLocal(dir)
	require.NoError(t, err)
	require.Equal(t, server, found)
	token := filepath.Join(dir, "up", "token")
	for name, mode := range map[string]os.FileMode{filepath.Dir(token): os.ModeDir | 0o700, token: 0o600, filepath.Join(dir, "up", "server.json"): 0o600} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), name)
	}
	announced, err := os.ReadFile(filepath.Join(dir, "up", "server.json"))
	require.NoError(t, err)
	require.NotContains(t, string(announced), lock.Token)
	require.NoError(t, lock.Close())

	requireNone() // another program that listens there now must not get the token
	again, err := supervisor.LockLocal(dir)
	require.NoError(t, err)
	require.Equal(t, lock.Token, again.Token, "it stays")
	requireNone() // the earlier announcement is gone
	require.NoError(t, again.Close())

	other, err := supervisor.LockLocal(t.TempDir())
	require.NoError(t, err)
	require.NotEqual(t, lock.Token, other.Token)
	require.Len(t, other.Token, 80)
	require.NoError(t, other.Close())
}

// TestLocalTokenOthersCouldRead checks that a token that other users could read is replaced, and that a file without
// a valid token is an error.
func TestLocalTokenOthersCouldRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "up", "token")
	first, err := supervisor.LockLocal(dir)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.NoError(t, os.Chmod(name, 0o640)) //nolint:gosec // the fault of this test

	second, err := supervisor.LockLocal(dir)
	require.NoError(t, err)
	require.NotEqual(t, first.Token, second.Token)
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.NoError(t, second.Close())

	require.NoError(t, os.WriteFile(name, []byte("short\n"), 0o600))
	_, err = supervisor.LockLocal(dir)
	require.ErrorContains(t, err, name+" holds no token; remove it")
}

// TestConnectionIsLocal checks which settings lead to the server of a `claudeops up`, and that no other server is sent
// its token.
func TestConnectionIsLocal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := supervisor.LockLocal(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lock.Close()) })
	require.NoError(t, lock.Announce(supervisor.LocalServer{Address: "127.0.0.1:7234"}))
	for _, tc := range []struct {
		dir     string
		environ []string
		address string
		local   bool
	}{
		{dir, nil, "127.0.0.1:7234", true},
		{dir, []string{"TEMPORAL_ADDRESS=127.0.0.1:7234"}, "127.0.0.1:7234", true},
		{dir, []string{"TEMPORAL_ADDRESS=localhost:7234"}, "127.0.0.1:7234", true},
		{dir, []string{"TEMPORAL_ADDRESS=[::1]:7234", "TEMPORAL_API_KEY=old"}, "127.0.0.1:7234", true},
		{dir, []string{"TEMPORAL_ADDRESS=localhost:7233"}, "localhost:7233", false},
		{dir, []string{"TEMPORAL_ADDRESS=temporal.example.org:7234"}, "temporal.example.org:7234", false},
		{dir, []string{"TEMPORAL_ADDRESS=localhost.example.org:7234"}, "localhost.example.org:7234", false},
		{dir, []string{"TEMPORAL_ADDRESS=dns:///127.0.0.1:7234"}, "dns:///127.0.0.1:7234", false},
		{t.TempDir(), nil, client.DefaultHostPort, false},
		{t.TempDir(), []string{"TEMPORAL_ADDRESS=127.0.0.1:7234"}, "127.0.0.1:7234", false},
	} {
		environ := append([]string{"TEMPORAL_CONFIG_FILE=" + filepath.Join(t.TempDir(), "none.toml")}, tc.environ...)
		options, err := supervisor.ConnectionOptions(environ, config.Config{State: config.State{Dir: tc.dir}}, slog.New(slog.DiscardHandler))
		require.NoError(t, err, "%q", tc.environ)
		require.Equal(t, tc.address, options.HostPort, "%q", tc.environ)
		require.Equal(t, tc.local, options.ConnectionOptions.TLSDisabled, "%q", tc.environ)
		require.Equal(t, tc.local, options.Credentials != nil, "%q", tc.environ)
		require.Equal(t, tc.local, supervisor.IsLocal(options, tc.dir), "%q", tc.environ)
		require.Equal(t, strings.HasPrefix(tc.address, "127.") || strings.HasPrefix(tc.address, "localhost:"),
			supervisor.IsOnThisHost(options.HostPort), "%q", tc.environ)
		require.Equal(t, client.DefaultNamespace, options.Namespace)
	}
}

// TestConnectSaysThatATokenIsWanted connects to the server of another state directory. The error must say how to get
// its token.
func TestConnectSaysThatATokenIsWanted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	server, err := embedded.Start(t.Context(), embedded.Options{NoUI: true, Token: strings.Repeat("5", 64), Logger: quiet()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	nowhere := config.Config{State: config.State{Dir: t.TempDir()}}
	for name, more := range map[string][]string{
		"none": nil, "a wrong one": {"TEMPORAL_API_KEY=wrong", "TEMPORAL_TLS=false"},
	} {
		options, err := supervisor.ConnectionOptions(append(more, "TEMPORAL_ADDRESS="+server.Address()), nowhere, quiet())
		require.NoError(t, err)
		_, err = supervisor.Connect(t.Context(), options)
		require.ErrorContains(t, err, "connect to Temporal at "+server.Address()+": this Temporal belongs to a `claudeops up` and wants its token: "+
			"set CLAUDEOPS_STATE_DIR to the state directory of that one, or run the lines that its `claudeops env` prints", name)
	}
	options, err := supervisor.ConnectionOptions([]string{
		"TEMPORAL_ADDRESS=" + server.Address(), "TEMPORAL_API_KEY=" + strings.Repeat("5", 64), "TEMPORAL_TLS=false",
	}, nowhere, quiet())
	require.NoError(t, err)
	connected, err := supervisor.Connect(t.Context(), options)
	require.NoError(t, err, "what `claudeops env` prints is enough")
	connected.Close()
}
