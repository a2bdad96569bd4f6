package treeinit

import (
	"errors"
	"slices"
	"strconv"
	"syscall"
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

// openPath opens the file that a path of the caller names. If somebody creates a file at the path meanwhile, that file
// is judged, too.
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

// openSystem opens a file of the system, in whose directories no agent makes links, pipes or devices. It fails with
// ELOOP if a link is in the path. Otherwise the path is the file's real path.
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

// carryOn lets the kernel carry out the call, which reads the path again. That is safe only for a reference to a file
// (O_PATH), which can neither be read nor written, and whose flags are in a register.
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
		return -1, c.openPipe(found, how.flags)
	}
	return syscall.Openat(ownDescriptors, strconv.Itoa(found.file), flags&^(syscall.O_CREAT|syscall.O_NOFOLLOW), mode)
}

// openPipe opens a named pipe, and gives it to the caller when its other end is open.
func (c *call) openPipe(found *place, how uint64) error {
	flags := int(how&(1<<32-1))&^(syscall.O_CREAT|syscall.O_NOFOLLOW) |
		syscall.O_CLOEXEC | syscall.O_NOCTTY | syscall.O_NONBLOCK
	pipe := found.file
	found.file = -1 // closed by the call that waits
	w := &waitingCall{call: c, ready: -1, held: []int{pipe}}
	give := func(opened int) error {
		w.release()
		if err := syscall.SetNonblock(opened, false); err != nil {
			_ = syscall.Close(opened)
			return err
		}
		return c.give(opened, how)
	}
	w.attempt = func() error {
		opened, err := syscall.Openat(atFDCWD, ownDescriptor(pipe), flags, 0)
		switch {
		case errors.Is(err, syscall.ENXIO): // nobody reads yet
			return errWaits
		case err != nil:
			return err
		case flags&syscall.O_ACCMODE != syscall.O_RDONLY:
			return give(opened)
		}
		w.held = append(w.held, opened) // it is open meanwhile, so that a writer finds it
		return w.awaitWriter(opened, give)
	}
	w.isLate = func() error {
		if w.caller.hasSignal() {
			return syscall.EINTR
		}
		return w.waits()
	}
	err := w.attempt()
	if errors.Is(err, errWaits) {
		return c.wait(w)
	}
	w.release()
	return err
}

// awaitWriter has the call wait until somebody has opened a pipe to write.
func (w *waitingCall) awaitWriter(pipe int, give func(int) error) error {
	var copies [2]int
	if err := syscall.Pipe2(copies[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return err
	}
	w.held = append(w.held, copies[:]...)
	w.attempt = func() error {
		if !written(pipe, copies[1]) {
			return errWaits
		}
		w.held = slices.DeleteFunc(w.held, func(each int) bool { return each == pipe })
		return give(pipe)
	}
	return w.attempt()
}

// written reports whether somebody writes to a pipe, or has written, and takes nothing from it.
func written(pipe, copies int) bool {
	// SPLICE_F_NONBLOCK: an empty pipe is an error while somebody writes to it, and its end otherwise
	const nonBlocking = 2
	if n, err := syscall.Tee(pipe, copies, 1, nonBlocking); n > 0 || errors.Is(err, syscall.EAGAIN) {
		return true
	}
	return poll(pipe, pollIn, 0) // it is found, too, if the writer has closed the pipe already
}

// give makes a file of this process the result of the call, and closes it here. It closes the file before the caller
// goes on: with a copy here, the caller could not execute what it has just written, its lock would outlast it, and a
// pipe would seem to have another end.
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

// add adds a file to the caller's, and returns its number there. It does not use the flag with which the kernel also
// answers the call: if a signal of Go's runtime interrupts it then, the caller gets the number 0 and no file.
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
