package treeinit

import (
	"errors"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// open2 is open with the struct of openat2.
func (c *call) open2(dir int, address, structure, size uint64) error {
	how, err := c.openHow(structure, size)
	if err != nil {
		return err
	}
	if how.flags&oPath != 0 { // the kernel gives no such reference, so the file is judged and opened for reading
		how.flags = how.flags&^oPath | syscall.O_NONBLOCK
	}
	if how.resolve&resolveCached != 0 {
		return syscall.EAGAIN // as if the kernel had to look
	}
	return c.openPath(dir, address, how)
}

// open opens a file for the caller.
func (c *call) open(dir int, address uint64, how openHow) error {
	if how.flags&oPath != 0 {
		return c.carryOn()
	}
	return c.openPath(dir, address, how)
}

// openPath opens the file that a path of the caller names. If somebody creates a file at the path meanwhile, that file is judged, too.
func (c *call) openPath(dir int, address uint64, how openHow) error {
	path, err := c.text(address)
	if err == nil && path == judgedQuestion {
		err = syscall.EALREADY
	}
	if err != nil {
		return err
	}
	if c.rules.isSystem(path) && how.resolve == 0 && how.flags&^systemFlags == 0 {
		if err := c.openSystem(path, how); err != syscall.ELOOP { //nolint:errorlint // a number
			return err
		}
	}
	start, err := c.directory(dir, path)
	if err != nil {
		return err
	}
	defer closeDirectory(start)
	const attempts = 50
	for range attempts {
		if err = c.openFrom(start, path, how); !errors.Is(err, errCreated) {
			return err
		}
	}
	return syscall.EACCES
}

// systemFlags open a file to read it.
const systemFlags = syscall.O_CLOEXEC | syscall.O_NOCTTY | syscall.O_NONBLOCK | syscall.O_DIRECTORY | syscall.O_NOFOLLOW

// openSystem opens a file of the system, in whose directories no agent makes links, pipes or devices. It fails with ELOOP if a link
// is in the path. Otherwise the path is the file's real path.
func (c *call) openSystem(path string, how openHow) error {
	flags := how.flags | syscall.O_CLOEXEC | syscall.O_NOCTTY
	file, err := openAt2(atFDCWD, path, openHow{flags: flags, resolve: resolveNoSymlinks})
	if err != nil {
		return err
	}
	err = c.giveCopy(file, how.flags) // nobody notices that it is closed here later, since nobody changes or locks it
	_ = syscall.Close(file)
	return err
}

// errCreated means that a file that was missing exists now.
var errCreated = errors.New("created")

func (c *call) openFrom(start int, path string, how openHow) error {
	exclusive := how.flags&(syscall.O_CREAT|syscall.O_EXCL) == syscall.O_CREAT|syscall.O_EXCL
	follow := how.flags&syscall.O_NOFOLLOW == 0 && !exclusive
	var found place
	var err error
	if how.resolve == 0 {
		found, err = find(c.caller, start, path, follow)
	} else {
		found, err = findWithin(start, path, follow, how)
	}
	if err != nil {
		return err
	}
	defer found.close()
	if err := c.allow(&found, accessOf(how.flags)); err != nil {
		return err
	}
	file, err := c.openPlace(&found, how)
	if err != nil {
		return err
	}
	return c.give(file, how.flags)
}

// carryOn lets the kernel carry out the call, which reads the path again. That is safe only for a reference to a file (O_PATH),
// which can neither be read nor written, and whose flags are in a register.
func (c *call) carryOn() error {
	const userNotifContinue = 1
	reply := notificationAnswer{id: c.asked.id, flags: userNotifContinue}
	_ = ioctl(c.listener, notifSend, unsafe.Pointer(&reply)) //nolint:gosec // how the kernel takes a struct
	return errAnswered
}

// accessOf returns what a program can do with a file that it opens with the flags.
func accessOf(flags uint64) access {
	wanted := access(0)
	mode := flags & syscall.O_ACCMODE
	if mode != syscall.O_WRONLY {
		wanted |= toRead
	}
	if mode != syscall.O_RDONLY || flags&(syscall.O_CREAT|syscall.O_TRUNC) != 0 || flags&tmpFile == tmpFile {
		wanted |= toWrite
	}
	return wanted
}

// openPlace opens the file that has been judged.
func (c *call) openPlace(found *place, how openHow) (int, error) {
	// A terminal must not become the terminal of this process.
	flags := int(how.flags&(1<<32-1)) | syscall.O_CLOEXEC | syscall.O_NOCTTY
	mode := uint32(how.mode & 0o7777)
	if how.flags&(syscall.O_CREAT|tmpFile) != 0 {
		mode &^= c.caller.umask()
	}
	exclusive := how.flags&(syscall.O_CREAT|syscall.O_EXCL) == syscall.O_CREAT|syscall.O_EXCL
	if found.file < 0 {
		if how.flags&syscall.O_CREAT == 0 {
			return -1, syscall.ENOENT
		}
		file, err := syscall.Openat(found.parent, found.base, flags|syscall.O_EXCL|syscall.O_NOFOLLOW, mode)
		if err == syscall.EEXIST && !exclusive {
			return -1, errCreated
		}
		return file, err
	}
	if exclusive {
		return -1, syscall.EEXIST
	}
	kind := found.kind()
	switch {
	case kind == syscall.S_IFLNK:
		return -1, syscall.ELOOP
	case kind == syscall.S_IFSOCK:
		return -1, syscall.ENXIO
	case kind == syscall.S_IFDIR && how.flags&syscall.O_CREAT != 0:
		return -1, syscall.EISDIR
	case kind == syscall.S_IFIFO && how.flags&syscall.O_NONBLOCK == 0:
		return c.openPipe(found.file, flags)
	}
	return syscall.Openat(ownDescriptors, strconv.Itoa(found.file), flags&^(syscall.O_CREAT|syscall.O_NOFOLLOW), mode)
}

// pipePause is the time between two looks for the other end of a named pipe.
const pipePause = 2 * time.Millisecond

// openPipe opens a named pipe, and waits for its other end as long as the caller waits.
func (c *call) openPipe(file, flags int) (int, error) {
	if err := c.stepAside(); err != nil {
		return -1, err
	}
	defer c.stepBack()
	for {
		opened, err := syscall.Openat(atFDCWD, ownDescriptor(file), flags&^(syscall.O_CREAT|syscall.O_NOFOLLOW)|syscall.O_NONBLOCK, 0)
		switch {
		case err == nil && flags&syscall.O_ACCMODE == syscall.O_RDONLY && !c.awaitWriter(opened):
			_ = syscall.Close(opened)
			return -1, syscall.EINTR
		case err == nil:
			return opened, syscall.SetNonblock(opened, false)
		case !errors.Is(err, syscall.ENXIO):
			return -1, err
		case !c.valid():
			return -1, syscall.EINTR
		}
		time.Sleep(pipePause) // nobody reads yet
	}
}

// awaitWriter waits until somebody has opened a pipe to write. It reports whether the caller still waits.
func (c *call) awaitWriter(pipe int) bool {
	var copies [2]int
	if err := syscall.Pipe2(copies[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return false
	}
	defer func() { _, _ = syscall.Close(copies[0]), syscall.Close(copies[1]) }()
	for c.valid() {
		if written(pipe, copies[1]) {
			return true
		}
	}
	return false
}

// written reports whether somebody writes to a pipe, or has written, and takes nothing from it. If nobody does, written waits a moment.
func written(pipe, copies int) bool {
	const nonBlocking = 2 // SPLICE_F_NONBLOCK: an empty pipe is an error while somebody writes to it, and its end otherwise
	if n, err := syscall.Tee(pipe, copies, 1, nonBlocking); n > 0 || errors.Is(err, syscall.EAGAIN) {
		return true
	}
	return poll(pipe, pollIn, pipePause) // it is found, too, if the writer has closed the pipe already
}

const (
	pollIn  = 1
	pollOut = 4
)

// poll waits until a descriptor is ready, but not longer than pause. It reports whether it is.
func poll(descriptor int, wanted int16, pause time.Duration) bool {
	type pollRequest struct {
		descriptor    int32
		wanted, found int16
	}
	request := pollRequest{descriptor: int32(descriptor), wanted: wanted} //nolint:gosec // a descriptor
	timeout := syscall.NsecToTimespec(int64(pause))
	n, _, _ := syscall.Syscall6(syscall.SYS_PPOLL,
		uintptr(unsafe.Pointer(&request)), 1, uintptr(unsafe.Pointer(&timeout)), 0, 0, 0) //nolint:gosec // how the kernel takes structs
	return n == 1
}

// give makes a file of this process the result of the call, and closes it here. It closes the file before the caller goes on: with a copy
// here, the caller could not execute what it has just written, its lock would outlast it, and a pipe would seem to have another end.
func (c *call) give(file int, flags uint64) error {
	number, err := c.add(file, flags)
	_ = syscall.Close(file)
	if err != nil {
		return err
	}
	return c.returnNumber(number)
}

// giveCopy makes a file of this process the result of the call, and leaves it open here.
func (c *call) giveCopy(file int, flags uint64) error {
	number, err := c.add(file, flags)
	if err != nil {
		return err
	}
	return c.returnNumber(number)
}

// add adds a file to the caller's, and returns its number there. It does not use the flag with which the kernel also answers the call: if
// a signal of Go's runtime interrupts it then, the caller gets the number 0 and no file.
func (c *call) add(file int, flags uint64) (int64, error) {
	given := givenFile{id: c.asked.id, source: uint32(file)} //nolint:gosec // a descriptor
	given.targetDescriptors = uint32(flags & syscall.O_CLOEXEC)
	number, _, errno := syscall.Syscall(
		syscall.SYS_IOCTL, uintptr(c.listener), notifAddFD, uintptr(unsafe.Pointer(&given))) //nolint:gosec // how the kernel takes a struct
	return int64(number), failure(errno) //nolint:gosec // a descriptor
}

// returnNumber answers the call with a number.
func (c *call) returnNumber(number int64) error {
	reply := notificationAnswer{id: c.asked.id, value: number}
	_ = ioctl(c.listener, notifSend, unsafe.Pointer(&reply)) //nolint:gosec // how the kernel takes a struct
	return errAnswered
}
