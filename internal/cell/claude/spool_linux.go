package claude

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// createUnnamed creates a file in dir that never has a name, so that no other process can open the file by one. If the
// file system of dir has no such files, createUnnamed removes the name at once.
func createUnnamed(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	switch {
	case err == nil:
		return os.NewFile(uintptr(fd), filepath.Join(dir, "claude-stream")), nil
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR): // EISDIR: the kernel does not know O_TMPFILE
		return createAndUnlink(dir)
	}
	return nil, &os.PathError{Op: "create", Path: dir, Err: err}
}
