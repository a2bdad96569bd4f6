package files

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Chmod changes the mode of a file or directory in root. It changes no link, nor what a link leads to.
//
// Root.Chmod uses the system call fchmodat2. The filters of systemd before version 255 do not know it, and answer that
// the operation is not permitted: under the unit of the worker, nothing that an agent had left would be removed. The
// older fchmodat follows links, so it gets the file as one that is open already.
func Chmod(root *os.Root, name string, mode fs.FileMode) (err error) {
	file, err := root.OpenFile(name, unix.O_PATH|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return &fs.PathError{Op: "chmod", Path: name, Err: ErrForeign}
	}
	connection, err := file.SyscallConn()
	if err != nil {
		return err
	}
	failure := connection.Control(func(descriptor uintptr) {
		path := "/proc/self/fd/" + strconv.FormatUint(uint64(descriptor), 10)
		err = unix.Fchmodat(unix.AT_FDCWD, path, uint32(mode.Perm()), 0)
	})
	if err = errors.Join(failure, err); err != nil {
		return &fs.PathError{Op: "chmod", Path: name, Err: err}
	}
	return nil
}
