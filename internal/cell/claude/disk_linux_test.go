package claude

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAFullDiskIsNamed checks the error for a full disk. It mounts a small file system, which needs privileges.
func TestAFullDiskIsNamed(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	cli, invocation := script(t, "head -c 1000000 /dev/zero; echo '"+good+"'; exit 0")
	cli.options.SpoolDir = disk
	_, err := cli.Run(t.Context(), invocation, nil)
	require.Equal(t, KindDiskFull, KindOf(err), "%v", err)
	require.ErrorContains(t, err, "the disk of "+disk+" is full")
}
