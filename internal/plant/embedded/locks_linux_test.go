package embedded

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestLookingAtTheFileKeepsItsLocks checks that createPrivate keeps the locks that this process holds on the file,
// as it does when a second server is started. The kernel drops a process's locks when it closes any descriptor of
// the locked file.
func TestLookingAtTheFileKeepsItsLocks(t *testing.T) {
	t.Parallel()
	file, err := os.OpenFile(writeFile(t, "database"), os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	held := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	require.NoError(t, unix.FcntlFlock(file.Fd(), unix.F_SETLK, &held))

	require.NoError(t, createPrivate(file.Name()))

	other, err := os.OpenFile(file.Name(), os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	seen := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	require.NoError(t, unix.FcntlFlock(other.Fd(), unix.F_OFD_GETLK, &seen))
	require.EqualValues(t, unix.F_WRLCK, seen.Type, "the lock is gone")
}
