package proctable

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// Entry is a process as /proc shows it.
type Entry struct {
	PID, Parent int
	// Started is the time at which the process started. It distinguishes processes that had the same number one after
	// the other.
	Started uint64
	Zombie  bool
}

// Check fails if /proc does not show this process's own PID namespace. The process numbers of another namespace would
// be wrong here.
func Check() error {
	shown, err := os.Readlink("/proc/self")
	if err != nil {
		return err
	}
	if shown != strconv.Itoa(os.Getpid()) {
		return errors.New("/proc shows the processes of another PID namespace")
	}
	return nil
}

// Numbers lists the numbers of the processes in /proc. It is not a snapshot: processes start and end meanwhile.
func Numbers() (found []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid > 0 {
			found = append(found, pid)
		}
	}
	return found
}

// All lists the processes in /proc.
func All() (found []Entry) {
	for _, pid := range Numbers() {
		if entry, err := Find(pid); err == nil {
			found = append(found, entry)
		}
	}
	return found
}

// readFile reads a file of a process in /proc. A scan reads a file of every process, so readFile makes fewer system
// calls than os.ReadFile.
func readFile(pid int, name string) ([]byte, error) {
	descriptor, err := syscall.Open("/proc/"+strconv.Itoa(pid)+"/"+name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Close(descriptor) }()
	content := make([]byte, 0, 4096)
	for {
		content = slices.Grow(content, 1)
		n, err := syscall.Read(descriptor, content[len(content):cap(content)])
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return nil, err
		case n <= 0:
			return content, nil
		default:
			content = content[:len(content)+n]
		}
	}
}

// Find returns the entry of one process.
func Find(pid int) (Entry, error) {
	line, err := readFile(pid, "stat")
	if err != nil {
		return Entry{}, err
	}
	// The second field is the program's name in parentheses and can contain any character. The third field is the
	// state, the fourth the parent process, the 22nd the time of the start.
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) < 20 {
		return Entry{}, errors.New("unexpected content of stat of process " + strconv.Itoa(pid))
	}
	parent, malformed := strconv.Atoi(string(fields[1]))
	started, err := strconv.ParseUint(string(fields[19]), 10, 64)
	return Entry{
		PID: pid, Parent: parent, Started: started, Zombie: fields[0][0] == 'Z' || fields[0][0] == 'X',
	}, errors.Join(malformed, err)
}

// Descendants returns the entries of all processes that descend from one of the roots, without the roots.
func Descendants(all []Entry, roots ...int) []Entry {
	children := map[int][]Entry{}
	for _, entry := range all {
		children[entry.Parent] = append(children[entry.Parent], entry)
	}
	var found []Entry
	seen := map[int]bool{}
	for len(roots) > 0 {
		root := roots[0]
		roots = roots[1:]
		for _, child := range children[root] {
			if !seen[child.PID] {
				seen[child.PID] = true
				found = append(found, child)
				roots = append(roots, child.PID)
			}
		}
	}
	return found
}

// HasMark reports whether the process's environment contained mark, an entry of the form "NAME=value", when the
// process's program started. If this process may not read the environment, because the other process belongs to another
// user, HasMark returns false.
func (e Entry) HasMark(mark string) bool { return e.EnvironHas(mark + "\x00") }

// EnvironHas reports whether an entry of the process's environment begins with the given text. Like HasMark it reads
// the environment from the program's start, and returns false if this process may not read the environment.
func (e Entry) EnvironHas(beginning string) bool {
	environ, err := readFile(e.PID, "environ")
	return err == nil && (bytes.HasPrefix(environ, []byte(beginning)) ||
		bytes.Contains(environ, []byte("\x00"+beginning)))
}
