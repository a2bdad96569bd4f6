package filelock_test

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/filelock"
)

// holdVariable is the environment variable that makes this test binary lock and hold a file as another process. Its
// value is the name of the file.
const holdVariable = "FILELOCK_TEST_HOLD"

func TestMain(m *testing.M) {
	if name := os.Getenv(holdVariable); name != "" {
		os.Exit(hold(name))
	}
	os.Exit(m.Run())
}

// hold locks the named file, prints a line, and holds the lock until the process is killed.
func hold(name string) int {
	if _, err := filelock.Create(name); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("locked")
	time.Sleep(time.Hour)
	return 0
}

func TestCreate(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "lock")
	lock, err := filelock.Create(name)
	require.NoError(t, err)
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())

	_, err = filelock.Create(name)
	require.ErrorIs(t, err, filelock.ErrHeld)
	require.ErrorContains(t, err, name)
	requireHeld(t, true, name)

	require.NoError(t, lock.Close())
	requireHeld(t, false, name)
	again, err := filelock.Create(name)
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func TestExistingFilesAndDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("content"), 0o600))
	for _, name := range []string{dir, file} {
		lock, err := filelock.Try(name)
		require.NoError(t, err)
		_, err = filelock.Try(name)
		require.ErrorIs(t, err, filelock.ErrHeld)
		require.NoError(t, lock.Close())
	}
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "content", string(content))
}

func TestOnlyCreateMakesAFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "missing")
	_, err := filelock.Try(name)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = filelock.Wait(t.Context(), name)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = filelock.IsHeld(name)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = filelock.Create(filepath.Join(name, "lock"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoFileExists(t, name)
}

func TestWait(t *testing.T) {
	t.Parallel()
	for name, ctx := range map[string]context.Context{"cancellable": t.Context(), "endless": context.WithoutCancel(t.Context())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first, err := filelock.Wait(ctx, dir)
			require.NoError(t, err)
			second := make(chan error, 1)
			go func() {
				lock, err := filelock.Wait(ctx, dir)
				if err == nil {
					err = lock.Close()
				}
				second <- err
			}()
			select {
			case err := <-second:
				require.Fail(t, "it did not wait", "%v", err)
			case <-time.After(50 * time.Millisecond):
			}
			require.NoError(t, first.Close())
			require.NoError(t, <-second)
		})
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := filelock.Try(dir)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	for range 2 { // the second time ctx has already ended
		_, err = filelock.Wait(ctx, dir)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.NoError(t, lock.Close())
}

func TestAProcessThatDiesReleases(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "lock")
	holder := exec.CommandContext(t.Context(), os.Args[0])
	holder.Env = append(os.Environ(), holdVariable+"="+name)
	output, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	said, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "locked\n", said)
	requireHeld(t, true, name)
	_, err = filelock.Try(name)
	require.ErrorIs(t, err, filelock.ErrHeld)

	require.NoError(t, holder.Process.Kill())
	require.Error(t, holder.Wait())
	requireHeld(t, false, name)
	lock, err := filelock.Try(name)
	require.NoError(t, err)
	require.NoError(t, lock.Close())
}

func requireHeld(t *testing.T, want bool, name string) {
	t.Helper()
	held, err := filelock.IsHeld(name)
	require.NoError(t, err)
	require.Equal(t, want, held)
}
