package files

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func openRoot(t *testing.T) (root *os.Root, dir string) {
	t.Helper()
	dir = t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	return root, dir
}

// TestOpenTakesPlainFilesOnly tries what an agent can put at the path of a file.
func TestOpenTakesPlainFilesOnly(t *testing.T) {
	t.Parallel()
	root, dir := openRoot(t)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("token"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain"), []byte("own"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "twice"), []byte("own"), 0o600))
	require.NoError(t, os.Link(filepath.Join(dir, "twice"), filepath.Join(dir, "again")))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("plain", filepath.Join(dir, "inner")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	for _, name := range []string{"link", "inner", "twice", "dir", "pipe"} {
		_, err := Open(root, name, AnyOwner)
		require.ErrorIs(t, err, ErrForeign, name)
	}
	_, err := Open(root, "plain", os.Getuid()+1)
	require.ErrorIs(t, err, ErrForeign)
	_, err = Open(root, "../"+filepath.Base(dir)+"/plain", AnyOwner)
	require.Error(t, err)
	file, err := Open(root, "plain", os.Getuid())
	require.NoError(t, err)
	content, err := io.ReadAll(Reader(t.Context(), file))
	require.NoError(t, err)
	require.Equal(t, "own", string(content))
	require.NoError(t, file.Close())
}

// TestReaderEndsWithItsContext reads an endless file.
func TestReaderEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	read := 0
	zeros := readerFunc(func(p []byte) (int, error) {
		read++
		if read == 10 {
			cancel(enough)
		}
		return len(p), nil
	})
	_, err := io.Copy(io.Discard, Reader(ctx, zeros))
	require.ErrorIs(t, err, enough)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// makeDeep creates a directory with the given number of levels below it, as an agent can: one level after the other.
func makeDeep(t *testing.T, dir string, levels int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY, 0)
	require.NoError(t, err)
	for range levels {
		require.NoError(t, unix.Mkdirat(at, "d", 0o700))
		next, err := unix.Openat(at, "d", unix.O_DIRECTORY|unix.O_RDONLY, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(at))
		at = next
	}
	require.NoError(t, unix.Close(at))
}

// TestRemoveAllOfADeepDirectory removes a directory with more levels than the process may have descriptors.
//
//nolint:paralleltest // it limits the descriptors of the process
func TestRemoveAllOfADeepDirectory(t *testing.T) {
	root, dir := openRoot(t)
	makeDeep(t, dir, 3_000)
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	low := limit
	low.Cur = 100 // of the 60,000 levels that an agent made, 3,000 show as much
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }()
	var usage Usage
	quota := Quota{Bytes: 1 << 40, Files: 1 << 30, Depth: 100}
	require.NoError(t, usage.Measure(root, quota))
	require.Equal(t, "directories more than 100 levels deep", usage.Exceeds(quota))
	require.NoError(t, RemoveAll(root, "d"))
	require.NoDirExists(t, filepath.Join(dir, "d"))
}

// TestRemoveAll removes many files, directories without permissions, links and names that RemoveAll uses itself. It
// leaves alone what links lead to.
func TestRemoveAll(t *testing.T) {
	t.Parallel()
	root, dir := openRoot(t)
	outside := filepath.Join(t.TempDir(), "kept")
	require.NoError(t, os.WriteFile(outside, nil, 0o600))
	tree := filepath.Join(dir, "tree")
	for _, below := range []string{"a/b/c", ".removing-1/x", "closed/inner", "wide"} {
		require.NoError(t, os.MkdirAll(filepath.Join(tree, below), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(tree, below, "file"), []byte("x"), 0o600))
		require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(tree, below, "link")))
	}
	for i := range 3 * entriesAtOnce {
		require.NoError(t, os.Mkdir(filepath.Join(tree, "wide", strings.Repeat("d", 1+i%100)+string(rune('a'+i/100))), 0o700))
	}
	require.NoError(t, os.Chmod(filepath.Join(tree, "closed", "inner"), 0))
	require.NoError(t, os.Chmod(filepath.Join(tree, "closed"), 0))
	require.NoError(t, RemoveAll(root, "tree"))
	require.NoDirExists(t, tree)
	require.FileExists(t, outside)
	require.NoError(t, RemoveAll(root, "tree"), "there is nothing left")
	require.NoError(t, os.Symlink(filepath.Dir(outside), tree))
	require.NoError(t, RemoveAll(root, "tree"))
	require.FileExists(t, outside)
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	root, dir := openRoot(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "b", "full"), make([]byte, 1<<20), 0o600))
	sparse, err := os.Create(filepath.Join(dir, "sparse"))
	require.NoError(t, err)
	require.NoError(t, errors.Join(sparse.Truncate(1<<40), sparse.Close()))
	require.NoError(t, os.Symlink("/", filepath.Join(dir, "link")))
	var usage Usage
	generous := Quota{Bytes: 1 << 30, Files: 100, Depth: 10}
	require.NoError(t, usage.Measure(root, generous))
	require.Empty(t, usage.Exceeds(generous))
	require.Equal(t, 5, usage.Files)
	require.Equal(t, 2, usage.Depth)
	require.InDelta(t, 1<<20, usage.Bytes, 1<<18)
	for want, quota := range map[string]Quota{
		"more than 0 MiB":                     {Bytes: 1 << 19, Files: 100, Depth: 10},
		"more than 2 files":                   {Bytes: 1 << 30, Files: 2, Depth: 10},
		"directories more than 1 levels deep": {Bytes: 1 << 30, Files: 100, Depth: 1},
	} {
		var usage Usage
		require.NoError(t, usage.Measure(root, quota))
		require.Equal(t, want, usage.Exceeds(quota))
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, "a"), 0))
	hidden := Usage{}
	require.NoError(t, hidden.Measure(root, generous))
	require.Equal(t, usage, hidden, "permissions hide nothing")
}
