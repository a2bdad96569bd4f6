//go:build !linux

package shell

import (
	"os"
	"syscall"
)

// openPlain opens a file whose path has no symbolic link. Where the last part has become one, it fails.
func openPlain(path string, flags int, permissions os.FileMode) (*os.File, error) {
	return os.OpenFile(path, flags|syscall.O_NOFOLLOW, permissions) //nolint:gosec // the worker has allowed it
}

// isBroken returns false: a builtin that writes into a closed pipe goes on.
func isBroken(uintptr) bool { return false }

// dup makes the descriptor of to a copy of from.
func dup(from, to *os.File) error { return syscall.Dup2(int(from.Fd()), int(to.Fd())) }
