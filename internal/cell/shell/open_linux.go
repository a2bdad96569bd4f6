package shell

import (
	"os"

	"golang.org/x/sys/unix"
)

// openPlain opens a file whose path has no symbolic link. If a part of the path has become one, it fails.
func openPlain(path string, flags int, permissions uint32) (*os.File, error) {
	how := unix.OpenHow{Flags: uint64(flags) | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS} //nolint:gosec // no flag is negative
	if flags&os.O_CREATE != 0 {
		how.Mode = uint64(permissions)
	}
	descriptor, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(descriptor), path), nil
}

// isBroken reports whether a descriptor is the end of a pipe whose other end is closed.
func isBroken(descriptor uintptr) bool {
	polled := []unix.PollFd{{Fd: int32(descriptor)}} //nolint:gosec // a descriptor
	_, err := unix.Poll(polled, 0)
	return err == nil && polled[0].Revents&unix.POLLERR != 0
}

// dup makes the descriptor of to a copy of from.
func dup(from, to *os.File) error { return unix.Dup3(int(from.Fd()), int(to.Fd()), 0) }
