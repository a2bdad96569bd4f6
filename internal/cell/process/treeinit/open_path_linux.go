package treeinit

import (
	"bytes"
	"strconv"
	"syscall"
	"unsafe"
)

// caller is the program that made a system call, with the number of its thread as /proc shows it.
type caller struct {
	thread int
	// process is the number of the thread's process; 0 until it is needed.
	process int
}

// root returns the directory of the calling thread in /proc.
func (c *caller) root() string { return "/proc/" + strconv.Itoa(c.thread) }

// owns reports whether number, a name in /proc, is the calling process or one of its threads.
func (c *caller) owns(number string) bool {
	if number == strconv.Itoa(c.thread) {
		return true
	}
	return number == strconv.Itoa(c.group())
}

// group returns the number of the calling process; 0 if the process has ended.
func (c *caller) group() int {
	if c.process == 0 {
		c.process, _ = strconv.Atoi(statusField(c.root()+"/status", "Tgid:"))
	}
	return c.process
}

// executable returns the path of the program's executable; "" if the program has ended.
func (c *caller) executable() string {
	file, err := readLinkAt(atFDCWD, c.root()+"/exe")
	if err != nil {
		return ""
	}
	return file
}

// umask returns the bits that the caller withholds from new files.
func (c *caller) umask() uint32 {
	mask, err := strconv.ParseUint(statusField(c.root()+"/status", "Umask:"), 8, 32)
	if err != nil {
		return 0o77
	}
	return uint32(mask)
}

// statusField returns the value of a line in a file like /proc/self/status; "" if there is none.
func statusField(file, name string) string {
	descriptor, err := syscall.Open(file, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = syscall.Close(descriptor) }()
	buffer := make([]byte, 4096)
	n, err := syscall.Read(descriptor, buffer)
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(buffer[:n]) {
		if value, is := bytes.CutPrefix(line, []byte(name)); is {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// maxLinks is the number of symbolic links that Linux follows in a path (path_resolution(7)).
const maxLinks = 40

// isPlain reports whether a path is absolute, and has neither dots as names nor superfluous slashes.
func isPlain(path string) bool {
	if !hasPrefix(path, "/") || hasSuffix(path, "/") {
		return false
	}
	for at := 1; at < len(path); at++ {
		if path[at-1] == '/' {
			switch name, _, _ := cutPath(path[at:]); name {
			case "", ".", "..":
				return false
			}
		}
	}
	return true
}

// place is a file that exists, or the place of one that does not exist yet.
type place struct {
	// file refers to the file (O_PATH); -1 if there is none.
	file int
	// parent refers to the directory (O_PATH), and base is the name in it; -1 and "" if the path ends in "." or "..",
	// or in a link of /proc to an open file.
	parent int
	base   string
	// real is the real path and mode the kind of the file; empty until they are needed.
	real string
	mode uint32
}

// kind returns the file's kind: one of the constants S_IFMT masks.
func (p *place) kind() uint32 {
	if p.mode == 0 {
		p.mode = modeOf(p.file)
	}
	return p.mode
}

func (p *place) close() {
	for _, descriptor := range []int{p.file, p.parent} {
		if descriptor >= 0 {
			_ = syscall.Close(descriptor)
		}
	}
	p.file, p.parent = -1, -1
}

// path returns the absolute path of the place, without symbolic links.
func (p *place) path() (string, error) {
	if p.real != "" {
		return p.real, nil
	}
	var err error
	if p.file >= 0 {
		p.real, err = realPath(p.file)
		return p.real, err
	}
	dir, err := realPath(p.parent)
	if err != nil {
		return "", err
	}
	p.real = below(dir, p.base)
	return p.real, nil
}

// realPath returns the absolute path of an open file. The path of a removed file has no suffix.
func realPath(descriptor int) (string, error) {
	path, err := readLinkAt(ownDescriptors, strconv.Itoa(descriptor))
	return trimSuffix(path, " (deleted)"), err
}

// ownDescriptors is the directory with the descriptors of this process; -1 until it answers. Its names are found
// quicker than whole paths.
var ownDescriptors = -1

// ownDescriptor returns a path of a descriptor of this process.
func ownDescriptor(descriptor int) string { return "/proc/self/fd/" + strconv.Itoa(descriptor) }

// resolver finds the file that a path names for a caller. It follows links itself, because /proc/self is the caller's,
// and a link of /proc to an open file is followed for the caller's own files only.
type resolver struct {
	caller *caller
	links  int
	at     int // the directory so far; the resolver owns it
}

// find returns the place that a path names. start is the caller's directory, which find leaves open. With follow it
// also follows the path's last link. It fails like the system call: with ENOENT for a missing directory, for instance.
func find(who *caller, start int, path string, follow bool) (place, error) {
	if path == "" {
		return place{}, syscall.ENOENT
	}
	return findFrom(who, start, path, follow, maxMissing)
}

// maxMissing limits the directories of a path that are looked up because those below them are missing.
const maxMissing = 8

// findFrom lets the kernel find the file, which takes a single call. Below /proc, where the kernel would take this
// process for the caller, and for links to open files, it walks.
func findFrom(who *caller, start int, path string, follow bool, missing int) (place, error) {
	how := openHow{flags: oPath | syscall.O_CLOEXEC, resolve: resolveNoSymlinks}
	if !follow {
		how.flags |= syscall.O_NOFOLLOW
	}
	if isPlain(path) { // Without a link in it, it is the real path.
		if file, err := openAt2(start, path, how); err == nil {
			return place{file: file, parent: -1, real: path}, nil
		}
	}
	how.resolve = resolveNoMagicLinks
	file, err := openAt2(start, path, how)
	if err == nil {
		found := place{file: file, parent: -1}
		if target, err := found.path(); err == nil && target != "/proc" && !hasPrefix(target, "/proc/") {
			return found, nil
		}
		found.close()
	}
	base := baseOf(path)
	if err != syscall.ENOENT || missing == 0 || base == "" || base == "." || base == ".." { //nolint:errorlint // openAt2 returns numbers
		return walk(who, start, path, follow)
	}
	dir := path[:len(path)-len(base)]
	if dir == "" {
		dir = "."
	}
	parent, err := findFrom(who, start, dir, true, missing-1)
	if err != nil {
		return place{}, err
	}
	if parent.file < 0 {
		parent.close()
		return place{}, syscall.ENOENT
	}
	file, err = openAt2(parent.file, base, openHow{flags: oPath | syscall.O_CLOEXEC | syscall.O_NOFOLLOW})
	if err == syscall.ENOENT { //nolint:errorlint // as above
		if parent.parent >= 0 {
			_ = syscall.Close(parent.parent)
		}
		return place{file: -1, parent: parent.file, base: base}, nil
	}
	parent.close()
	if err != nil {
		return place{}, err
	}
	_ = syscall.Close(file)
	return walk(who, start, path, follow) // a link that leads nowhere, or to a link of /proc
}

// findWithin is find with the limits of openat2. It follows no links of /proc to open files, which would be those of
// this process.
func findWithin(start int, path string, follow bool, how openHow) (place, error) {
	limited := openHow{flags: oPath | syscall.O_CLOEXEC, resolve: how.resolve | resolveNoMagicLinks}
	if !follow {
		limited.flags |= syscall.O_NOFOLLOW
	}
	file, err := openAt2(start, path, limited)
	if err != syscall.ENOENT || how.flags&syscall.O_CREAT == 0 { //nolint:errorlint // openAt2 returns numbers
		return place{file: file, parent: -1}, err
	}
	base := baseOf(path)
	if base == "" {
		return place{}, syscall.EISDIR
	}
	dir := path[:len(path)-len(base)]
	if dir == "" {
		dir = "."
	}
	limited.flags |= syscall.O_DIRECTORY
	parent, err := openAt2(start, dir, limited)
	return place{file: -1, parent: parent, base: base}, err
}

// walk is find for paths with links, and for files that do not exist. A place in a directory has its parent.
func walk(who *caller, start int, path string, follow bool) (place, error) {
	first := "."
	if hasPrefix(path, "/") {
		start, first = atFDCWD, "/"
	}
	at, err := openAt2(start, first, openHow{flags: oPath | syscall.O_CLOEXEC})
	if err != nil {
		return place{}, err
	}
	r := &resolver{caller: who, at: at}
	found, err := r.walk(partsOf(path), follow, hasSuffix(path, "/"))
	if err != nil && r.at >= 0 {
		_ = syscall.Close(r.at)
	}
	return found, err
}

// partsOf returns the names in a path.
func partsOf(path string) (parts []string) {
	for path != "" {
		part, rest, _ := cutPath(path)
		if part != "" {
			parts = append(parts, part)
		}
		path = rest
	}
	return parts
}

// walk follows the parts of a path. The last part must be a directory if the path ends in a slash. The caller closes
// r.at if walk fails; otherwise it belongs to the place.
func (r *resolver) walk(parts []string, follow, isDirectory bool) (place, error) {
	for len(parts) > 0 {
		part := parts[0]
		parts = parts[1:]
		last := len(parts) == 0
		if part == "." || part == ".." {
			if err := r.enter(part); err != nil {
				return place{}, err
			}
			continue
		}
		file, err := openAt2(r.at, part, openHow{flags: oPath | syscall.O_CLOEXEC | syscall.O_NOFOLLOW})
		switch {
		case last && err == syscall.ENOENT: //nolint:errorlint // openAt2 returns numbers
			return place{file: -1, parent: r.at, base: part}, nil
		case err != nil:
			return place{}, err
		case isLink(file) && (follow || isDirectory || !last):
			next, err := r.link(file, part)
			_ = syscall.Close(file)
			if err != nil {
				return place{}, err
			}
			parts = append(next, parts...)
		case last && !isDirectory:
			return place{file: file, parent: r.at, base: part}, nil
		default:
			_ = syscall.Close(r.at)
			r.at = file
			if !isDir(file) {
				return place{}, syscall.ENOTDIR
			}
		}
	}
	return place{file: r.at, parent: -1}, nil
}

// enter moves to "." or "..".
func (r *resolver) enter(part string) error {
	next, err := openAt2(r.at, part, openHow{flags: oPath | syscall.O_CLOEXEC | syscall.O_DIRECTORY})
	if err != nil {
		return err
	}
	_ = syscall.Close(r.at)
	r.at = next
	return nil
}

// link follows a symbolic link in the directory that the resolver has reached. It returns the parts of the target that
// are still to be followed.
func (r *resolver) link(file int, name string) ([]string, error) {
	r.links++
	if r.links > maxLinks {
		return nil, syscall.ELOOP
	}
	target, err := readLinkAt(file, "")
	if err != nil {
		return nil, err
	}
	dir, err := realPath(r.at)
	if err != nil {
		return nil, err
	}
	if (dir == "/proc" || hasPrefix(dir, "/proc/")) && isProcFile(file) {
		return r.procLink(dir[len("/proc"):], name, target)
	}
	return partsOf(target), r.rewind(target)
}

// rewind moves to the root if the target of a link begins there.
func (r *resolver) rewind(target string) error {
	if !hasPrefix(target, "/") {
		return nil
	}
	root, err := openAt2(atFDCWD, "/", openHow{flags: oPath | syscall.O_CLOEXEC})
	if err != nil {
		return err
	}
	_ = syscall.Close(r.at)
	r.at = root
	return nil
}

// procLink follows a link of /proc. The argument dir is the link's directory below /proc.
func (r *resolver) procLink(dir, name, target string) ([]string, error) {
	if dir == "" {
		switch name {
		case "self":
			return []string{strconv.Itoa(r.caller.group())}, nil
		case "thread-self":
			return []string{strconv.Itoa(r.caller.group()), "task", strconv.Itoa(r.caller.thread)}, nil
		}
		return partsOf(target), r.rewind(target) // mounts, net
	}
	number, _, _ := cutPath(dir[1:])
	if !r.caller.owns(number) {
		return nil, syscall.EACCES
	}
	// The kernel follows a link to an open file or directory: its text need not be a path.
	next, err := openAt2(r.at, name, openHow{flags: oPath | syscall.O_CLOEXEC})
	if err != nil {
		return nil, err
	}
	_ = syscall.Close(r.at)
	r.at = next
	return nil, nil
}

// openAt2 opens a file like openat2(2). Its error is a syscall.Errno.
func openAt2(dir int, path string, how openHow) (int, error) {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, syscall.EINVAL
	}
	descriptor, _, errno := syscall.Syscall6(sysOpenat2, uintptr(dir),
		uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0) //nolint:gosec // they are structs
	if errno != 0 {
		return -1, errno
	}
	return int(descriptor), nil
}

// readLinkAt returns the target of a link. If path is empty, dir refers to the link itself.
func readLinkAt(dir int, path string) (string, error) {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return "", syscall.EINVAL
	}
	var buffer [4096]byte
	n, _, errno := syscall.Syscall6(syscall.SYS_READLINKAT, uintptr(dir),
		uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)), 0, 0) //nolint:gosec // a buffer
	if errno != 0 {
		return "", errno
	}
	return string(buffer[:n]), nil
}

func modeOf(descriptor int) uint32 {
	var info syscall.Stat_t
	if syscall.Fstat(descriptor, &info) != nil {
		return 0
	}
	return info.Mode & syscall.S_IFMT
}

func isLink(descriptor int) bool { return modeOf(descriptor) == syscall.S_IFLNK }

func isDir(descriptor int) bool { return modeOf(descriptor) == syscall.S_IFDIR }

// isProcFile reports whether a file is one of a /proc file system.
func isProcFile(descriptor int) bool {
	const procMagic = 0x9fa0
	var info syscall.Statfs_t
	return syscall.Fstatfs(descriptor, &info) == nil && info.Type == procMagic
}
