package treeinit

import (
	"strconv"
	"syscall"
	"unsafe"
)

// entry returns the place of a name in a directory, without following its last link.
func (c *call) entry(dir int, address uint64) (place, error) {
	path, err := c.text(address)
	if err != nil {
		return place{}, err
	}
	start, err := c.directory(dir, path)
	if err != nil {
		return place{}, err
	}
	defer closeDirectory(start)
	if trimmed := trimSlashes(path); trimmed != "" {
		path = trimmed
	}
	found, err := walk(c.caller, start, path, false)
	if err == nil && found.parent < 0 { // the path ends in . or ..
		found.close()
		err = syscall.EINVAL
	}
	return found, err
}

// newEntry returns the place of a name that does not exist yet, and judges its creation.
func (c *call) newEntry(dir int, address uint64) (place, error) {
	found, err := c.entry(dir, address)
	switch {
	case err == syscall.EINVAL: //nolint:errorlint // a number: the path ends in . or ..
		return place{}, syscall.EEXIST
	case err != nil:
		return place{}, err
	case found.file >= 0:
		err = syscall.EEXIST
	default:
		err = c.change(&found)
	}
	if err != nil {
		found.close()
	}
	return found, err
}

// change judges a change of a directory's entry. Afterwards this process makes the change, so the caller must still
// wait for it.
func (c *call) change(found *place) error {
	dir, err := realPath(found.parent)
	if err != nil {
		return err
	}
	if err := c.allowPath(below(dir, found.base), toWrite, false); err != nil {
		return err
	}
	return c.waits()
}

// waits fails if the caller no longer waits: a signal or another of its threads has ended the call.
func (c *call) waits() error {
	if !c.valid() {
		return syscall.EINTR
	}
	return nil
}

func (c *call) unlink(dir int, address, flags uint64) error {
	found, err := c.entry(dir, address)
	if err != nil {
		return err
	}
	defer found.close()
	if err := c.change(&found); err != nil {
		return err
	}
	name, err := syscall.BytePtrFromString(found.base)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall(syscall.SYS_UNLINKAT,
		uintptr(found.parent), uintptr(unsafe.Pointer(name)), uintptr(flags)) //nolint:gosec // how the kernel takes a text
	return failure(errno)
}

// createNode makes a named pipe, a socket or an empty file. A sandbox grants no devices.
func (c *call) createNode(dir int, address, mode uint64) error {
	switch mode & syscall.S_IFMT {
	case 0:
		mode |= syscall.S_IFREG
	case syscall.S_IFREG, syscall.S_IFIFO, syscall.S_IFSOCK:
	case syscall.S_IFCHR, syscall.S_IFBLK:
		return syscall.EACCES
	default:
		return syscall.EINVAL
	}
	return c.create(dir, address, mode)
}

// create makes a directory, or a file of another kind. The mode contains the kind.
func (c *call) create(dir int, address, mode uint64) error {
	found, err := c.newEntry(dir, address)
	if err != nil {
		return err
	}
	defer found.close()
	const permissions = 0o7777
	masked := uint32(mode&permissions) &^ c.caller.umask()
	if mode&syscall.S_IFMT == syscall.S_IFDIR {
		return syscall.Mkdirat(found.parent, found.base, masked)
	}
	return syscall.Mknodat(found.parent, found.base, uint32(mode&syscall.S_IFMT)|masked, 0)
}

func (c *call) symlink(target uint64, dir int, address uint64) error {
	text, err := c.text(target)
	if err != nil {
		return err
	}
	found, err := c.newEntry(dir, address)
	if err != nil {
		return err
	}
	defer found.close()
	link, err := syscall.BytePtrFromString(text)
	if err != nil {
		return err
	}
	name, err := syscall.BytePtrFromString(found.base)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall(syscall.SYS_SYMLINKAT,
		uintptr(unsafe.Pointer(link)), uintptr(found.parent), uintptr(unsafe.Pointer(name))) //nolint:gosec // texts
	return failure(errno)
}

// rename moves a file. A file that is secret at its old place must not get another name, under which it would not be.
func (c *call) rename(fromDir int, fromPath uint64, toDir int, toPath, flags uint64) error {
	from, err := c.entry(fromDir, fromPath)
	if err != nil {
		return err
	}
	defer from.close()
	to, err := c.entry(toDir, toPath)
	if err != nil {
		return err
	}
	defer to.close()
	for _, each := range []*place{&from, &to} {
		if err := c.movable(each); err != nil {
			return err
		}
		if err := c.change(each); err != nil {
			return err
		}
	}
	return twoNames(sysRenameat2, name{from.parent, from.base}, name{to.parent, to.base}, flags)
}

// maxMoved limits the files of a directory that are judged before it is moved.
const maxMoved = 20_000

// movable judges whether a file, or all files below a directory, may get another path.
func (c *call) movable(found *place) error {
	if found.file < 0 || isLink(found.file) {
		return nil
	}
	path, err := found.path()
	if err != nil {
		return err
	}
	left := maxMoved
	return c.movableBelow(found.file, path, &left)
}

func (c *call) movableBelow(file int, path string, left *int) error {
	directory := isDir(file)
	if err := c.allowPath(path, toRead|toWrite, directory); err != nil || !directory {
		return err
	}
	names, err := namesIn(file, left)
	if err != nil {
		return err
	}
	for _, name := range names {
		each, err := openAt2(file, name, openHow{flags: oPath | syscall.O_CLOEXEC | syscall.O_NOFOLLOW})
		if err == nil {
			err = c.movableBelow(each, below(path, name), left)
			_ = syscall.Close(each)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// namesIn lists a directory. It fails if the directory has more than *left entries, and otherwise reduces *left by
// their number.
func namesIn(dir int, left *int) (names []string, err error) {
	list, err := syscall.Openat(atFDCWD, ownDescriptor(dir), syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Close(list) }()
	buffer := make([]byte, 32<<10) //nolint:mnd // as package os
	for *left >= 0 {
		n, err := syscall.ReadDirent(list, buffer)
		if err != nil || n <= 0 {
			return names, err
		}
		var found int
		_, found, names = syscall.ParseDirent(buffer[:n], -1, names)
		*left -= found
	}
	return nil, syscall.EACCES
}

// link gives a file a second name.
func (c *call) link(fromDir int, fromPath uint64, toDir int, toPath, flags uint64) error {
	from, err := c.linked(fromDir, fromPath, flags)
	if err != nil {
		return err
	}
	defer from.close()
	if from.file < 0 {
		return syscall.ENOENT
	}
	to, err := c.newEntry(toDir, toPath)
	if err != nil {
		return err
	}
	defer to.close()
	if !isLink(from.file) {
		if err := c.allow(&from, toRead|toWrite); err != nil {
			return err
		}
	}
	return twoNames(syscall.SYS_LINKAT, name{atFDCWD, ownDescriptor(from.file)}, name{to.parent, to.base},
		atSymlinkFollow)
}

// linked returns the file that gets a second name.
func (c *call) linked(dir int, address, flags uint64) (place, error) {
	path, err := c.text(address)
	if err != nil {
		return place{}, err
	}
	if path == "" && flags&atEmptyPath != 0 {
		if dir < 0 {
			return place{}, syscall.EBADF
		}
		file, err := openAt2(atFDCWD, c.caller.root()+"/fd/"+strconv.Itoa(dir),
			openHow{flags: oPath | syscall.O_CLOEXEC})
		return place{file: file, parent: -1}, err
	}
	start, err := c.directory(dir, path)
	if err != nil {
		return place{}, err
	}
	defer closeDirectory(start)
	return find(c.caller, start, path, flags&atSymlinkFollow != 0)
}

func (c *call) truncate(address uint64, size int64) error {
	path, err := c.text(address)
	if err != nil {
		return err
	}
	start, err := c.directory(atFDCWD, path)
	if err != nil {
		return err
	}
	defer closeDirectory(start)
	found, err := find(c.caller, start, path, true)
	if err != nil {
		return err
	}
	defer found.close()
	if found.file < 0 {
		return syscall.ENOENT
	}
	if err := c.allow(&found, toWrite); err != nil {
		return err
	}
	if err := c.waits(); err != nil {
		return err
	}
	return syscall.Truncate(ownDescriptor(found.file), size)
}

// name is a name in a directory.
type name struct {
	dir  int
	base string
}

// twoNames makes the system call renameat2 or linkat.
func twoNames(number uintptr, from, to name, flags uint64) error {
	first, err := syscall.BytePtrFromString(from.base)
	if err != nil {
		return err
	}
	second, err := syscall.BytePtrFromString(to.base)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall6(number, uintptr(from.dir), uintptr(unsafe.Pointer(first)), //nolint:gosec // how the kernel takes a text
		uintptr(to.dir), uintptr(unsafe.Pointer(second)), uintptr(flags), 0) //nolint:gosec // as above
	return failure(errno)
}
