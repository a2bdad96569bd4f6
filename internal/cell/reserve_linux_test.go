package cell

import (
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReserve fills a disk and frees it again. On the full disk, the reserve makes room for the records.
func TestReserve(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=256m"); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	records, filler := filepath.Join(disk, "records"), filepath.Join(disk, "filler")
	r := openReserve(disk, slog.New(slog.DiscardHandler))
	r.close() // look by hand
	require.True(t, isHeld(r.path), "there is room")
	require.False(t, r.used())

	fill, err := os.Create(filler)
	require.NoError(t, err)
	for err == nil {
		_, err = fill.Write(make([]byte, 1<<20))
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, fill.Close())
	require.ErrorIs(t, os.WriteFile(records, make([]byte, 8<<20), 0o600), syscall.ENOSPC)
	r.look()
	require.True(t, r.used())
	require.NoError(t, os.WriteFile(records, make([]byte, 8<<20), 0o600), "the records go on")
	r.look()
	require.True(t, r.used(), "the space is not taken again while nobody made room")

	require.NoError(t, os.Remove(filler))
	r.look()
	require.False(t, r.used())
	require.True(t, isHeld(r.path))
}

// TestReserveOnASmallDisk checks that the reserve does not fill the disk that it is for.
func TestReserveOnASmallDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=100m"); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	r := openReserve(disk, slog.New(slog.DiscardHandler))
	r.close()
	require.NoFileExists(t, r.path)
	require.False(t, r.used())
}
