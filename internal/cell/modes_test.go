package cell

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestModesAreMended checks that the worker's files are closed again, and that the log says so.
func TestModesAreMended(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	database, link, elsewhere := filepath.Join(state, "claudeops.db"), filepath.Join(state, "link"), filepath.Join(t.TempDir(), "elsewhere")
	require.NoError(t, os.Mkdir(state, 0o700))
	for _, file := range []string{database, elsewhere} {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		require.NoError(t, os.Chmod(file, 0o644)) //nolint:gosec // as an agent would
	}
	require.NoError(t, os.Symlink(elsewhere, link))
	var said bytes.Buffer
	guard := newModes(Options{Closed: []string{state}, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	for _, mode := range []os.FileMode{0o755, 0} {
		require.NoError(t, os.Chmod(state, mode))
		guard.watch(t.Context(), "session")()
		requireMode(t, state, 0o700)
		requireMode(t, database, 0o600)
	}
	require.NoError(t, os.Chmod(database, 0o644)) //nolint:gosec // as an agent would
	guard.watch(t.Context(), "session")()
	requireMode(t, database, 0o600)
	requireMode(t, elsewhere, 0o644)
	require.Contains(t, said.String(), "an agent had changed the permissions of the worker's files")
	require.Contains(t, said.String(), database)
}

// TestModesThatTheOperatorChose checks that a directory that was open before is left alone.
func TestModesThatTheOperatorChose(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	require.NoError(t, os.Chmod(state, 0o755)) //nolint:gosec // on purpose
	guard := newModes(Options{Closed: []string{state}, Logger: slog.New(slog.DiscardHandler)})
	guard.watch(t.Context(), "session")()
	requireMode(t, state, 0o755)
}

func requireMode(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, mode, info.Mode().Perm(), path)
}
