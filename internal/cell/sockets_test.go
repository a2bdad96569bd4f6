package cell

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSocketDirsOfKilledWorkers starts a worker after others were killed. What they have left goes, and what belongs to
// a live one stays.
func TestSocketDirsOfKilledWorkers(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	live, err := newSocketDir(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	dead, err := newSocketDir(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dead.path, "socket"), nil, 0o600))
	require.NoError(t, dead.lock.Close()) // as the kernel does when it kills a worker
	own := filepath.Join(temporary, tempPrefix+"1")
	require.NoError(t, os.Mkdir(own, 0o700)) // of a session
	pipe, link := filepath.Join(temporary, socketsPrefix+"pipe"), filepath.Join(temporary, socketsPrefix+"link")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600)) // as any user can; opening it would wait for ever
	require.NoError(t, os.Symlink(own, link))

	next, err := newSocketDir(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoDirExists(t, dead.path)
	require.DirExists(t, own)
	require.FileExists(t, pipe)
	for _, dir := range []socketDir{live, next} {
		require.DirExists(t, dir.path)
		require.NoError(t, dir.close())
		require.NoDirExists(t, dir.path)
	}
}

// TestSocketDirWithoutATemporaryDirectory checks that a worker does not try for ever.
func TestSocketDirWithoutATemporaryDirectory(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "gone"))
	_, err := newSocketDir(slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestSocketDirsAtOnce starts many workers at once. None takes the directory of another one.
func TestSocketDirsAtOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	const workers = 50
	made := make([]socketDir, workers)
	errs := make([]error, workers)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() { made[i], errs[i] = newSocketDir(slog.New(slog.DiscardHandler)) })
	}
	all.Wait()
	for i := range workers {
		require.NoError(t, errs[i])
		require.DirExists(t, made[i].path)
		require.NoError(t, made[i].close())
	}
}
