package cell

import (
	"os"

	"golang.org/x/sys/unix"
)

// take creates the file of the reserve with all its space. Without enough space, or on a file system that cannot
// reserve any, there is no file.
func take(path string) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // of our own directory
	if err != nil {
		return
	}
	err = unix.Fallocate(int(file.Fd()), 0, 0, reserveBytes)
	_ = file.Close()
	if err != nil {
		_ = os.Remove(path)
	}
}
