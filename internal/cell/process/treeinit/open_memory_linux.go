package treeinit

import (
	"bytes"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// directory returns the directory in which a path of the caller begins. Close it with closeDirectory.
func (c *call) directory(dir int, path string) (int, error) {
	if hasPrefix(path, "/") {
		return atFDCWD, nil
	}
	name := c.caller.root() + "/cwd"
	if dir != atFDCWD {
		if dir < 0 {
			return -1, syscall.EBADF
		}
		name = c.caller.root() + "/fd/" + strconv.Itoa(dir)
	}
	start, err := openAt2(atFDCWD, name, openHow{flags: oPath | syscall.O_CLOEXEC})
	if err == syscall.ENOENT { //nolint:errorlint // openAt2 returns numbers
		return -1, syscall.EBADF
	}
	return start, err
}

func closeDirectory(start int) {
	if start >= 0 {
		_ = syscall.Close(start)
	}
}

// text reads a path from the caller's memory.
func (c *call) text(address uint64) (string, error) {
	const pathMax, page = 4096, 4096
	var buffer [pathMax]byte
	read := 0
	for read < pathMax {
		size := min(pathMax-read, page-int((address+uint64(read))%page))
		if read == 0 {
			size = min(size, 256) //nolint:mnd // most paths
		}
		n, err := c.memory(address+uint64(read), buffer[read:read+size])
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(buffer[read:read+n], 0); end >= 0 {
			return string(buffer[:read+end]), nil
		}
		read += n
	}
	return "", syscall.ENAMETOOLONG
}

// memory reads the caller's memory.
func (c *call) memory(address uint64, buffer []byte) (int, error) {
	type part struct {
		address uintptr
		length  uintptr
	}
	local := part{uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer))} //nolint:gosec // how the kernel takes a buffer
	remote := part{uintptr(address), uintptr(len(buffer))}
	n, _, errno := syscall.Syscall6(sysReadMemory, uintptr(c.caller.thread),
		uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0) //nolint:gosec // structs
	runtime.KeepAlive(buffer)
	switch {
	case errno == 0 && n > 0:
		return int(n), nil
	case errno == syscall.EFAULT || errno == 0:
		return 0, syscall.EFAULT
	}
	// The tree has another user than this process.
	file, err := syscall.Open(c.caller.root()+"/mem", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, syscall.EACCES
	}
	defer func() { _ = syscall.Close(file) }()
	read, err := syscall.Pread(file, buffer, int64(address)) //nolint:gosec // an address
	if err != nil || read == 0 {
		return 0, syscall.EFAULT
	}
	return read, nil
}

// copyMemory fills the buffer from the caller's memory.
func (c *call) copyMemory(address uint64, buffer []byte) error {
	for read := 0; read < len(buffer); {
		n, err := c.memory(address+uint64(read), buffer[read:])
		if err != nil {
			return err
		}
		read += n
	}
	return nil
}

// openHow reads the struct open_how of openat2.
func (c *call) openHow(address, size uint64) (how openHow, err error) {
	if size < uint64(unsafe.Sizeof(how)) {
		return how, syscall.EINVAL
	}
	if size > uint64(unsafe.Sizeof(how)) {
		return how, syscall.E2BIG
	}
	var buffer [unsafe.Sizeof(how)]byte
	if err := c.copyMemory(address, buffer[:]); err != nil {
		return how, err
	}
	return *(*openHow)(unsafe.Pointer(&buffer[0])), nil //nolint:gosec // the kernel's struct
}
