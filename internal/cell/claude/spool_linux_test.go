package claude

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestTheSpoolNeverHasAName watches the directory of a spool, as an agent of another session can. Whoever opens the
// spool can write another agent's verdict into it.
func TestTheSpoolNeverHasAName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Close(watch)) })
	_, err = unix.InotifyAddWatch(watch, dir, unix.IN_CREATE|unix.IN_DELETE)
	require.NoError(t, err)
	output, err := newSpool(dir)
	require.NoError(t, err)
	_, err = output.file.WriteString("{}\n")
	require.NoError(t, err)
	output.close()
	_, err = unix.Read(watch, make([]byte, 4096))
	require.ErrorIs(t, err, unix.EAGAIN, "nothing was created or removed")
}
