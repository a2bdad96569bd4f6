package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// processEntry is a process as /proc shows it.
type processEntry struct {
	pid, parent int
	// started is the time of the start. It distinguishes two processes that had the same number one after the other.
	started uint64
	zombie  bool
}

// checkProc fails unless /proc shows this process's own PID namespace. In another namespace the numbers would belong to
// other processes.
func checkProc() error {
	shown, err := os.Readlink("/proc/self")
	if err != nil {
		return err
	}
	if shown != strconv.Itoa(os.Getpid()) {
		return errors.New("/proc shows the processes of another PID namespace")
	}
	return nil
}

// processNumbers lists the numbers of the processes in /proc. It is not a snapshot: processes start and end meanwhile.
func processNumbers() (found []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if pid := number(name); pid > 0 {
			found = append(found, pid)
		}
	}
	return found
}

// allProcesses lists the processes in /proc.
func allProcesses() (found []processEntry) {
	for _, pid := range processNumbers() {
		if entry, err := readProcess(pid); err == nil {
			found = append(found, entry)
		}
	}
	return found
}

// readProc reads a file of a process in /proc. It makes fewer system calls than os.ReadFile, because a scan reads a file of
// every process.
func readProc(pid int, name string) ([]byte, error) {
	descriptor, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(descriptor) }()
	content := make([]byte, 0, 4096)
	for {
		content = slices.Grow(content, 1)
		n, err := unix.Read(descriptor, content[len(content):cap(content)])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, err
		case n <= 0:
			return content, nil
		default:
			content = content[:len(content)+n]
		}
	}
}

// readProcess reads the entry of one process.
func readProcess(pid int) (processEntry, error) {
	line, err := readProc(pid, "stat")
	if err != nil {
		return processEntry{}, err
	}
	// The second field is the program's name in parentheses and may contain any character. The third field is the state,
	// the fourth the parent, the 22nd the time of the start.
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) < 20 {
		return processEntry{}, fmt.Errorf("process %d: unexpected %q", pid, line)
	}
	started, err := strconv.ParseUint(string(fields[19]), 10, 64)
	return processEntry{
		pid:     pid,
		parent:  number(string(fields[1])),
		started: started,
		zombie:  fields[0][0] == 'Z' || fields[0][0] == 'X',
	}, err
}

// number returns text as a number, or -1.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// descendants returns the entries of all processes that descend from one of the roots, without the roots.
func descendants(all []processEntry, roots ...int) []processEntry {
	children := map[int][]processEntry{}
	for _, entry := range all {
		children[entry.parent] = append(children[entry.parent], entry)
	}
	var found []processEntry
	seen := map[int]bool{}
	for len(roots) > 0 {
		root := roots[0]
		roots = roots[1:]
		for _, child := range children[root] {
			if !seen[child.pid] {
				seen[child.pid] = true
				found = append(found, child)
				roots = append(roots, child.pid)
			}
		}
	}
	return found
}

const (
	// refusedPatience is the time to wait for processes that this process may not kill, because they belong to another
	// user. They may end on their own.
	refusedPatience = 5 * time.Second
	// deathPatience is the time to wait for processes to die after SIGKILL. They may be waiting for a disk, or for CPU
	// time on a busy machine.
	deathPatience = 30 * time.Second
	// scanPause is the longest pause between two scans of /proc. A scan takes milliseconds.
	scanPause = 100 * time.Millisecond
)

// remains counts the processes that were still alive when kill last sent SIGKILL to them.
type remains struct {
	living int
	// refused counts the living processes that this process may not kill.
	refused int
}

// hopeless reports whether to give up after the time waited. The limit is patience if this process may not kill any of
// the living processes. Otherwise the limit is deathPatience.
func (r remains) hopeless(waited, patience time.Duration) bool {
	return waited > deathPatience || waited > patience && r.refused > 0 && r.refused == r.living
}

// kill kills entries, and counts those that were alive.
func kill(entries []processEntry) (left remains) {
	for _, entry := range entries {
		// Kill zombies, too, because perhaps only the first thread has ended.
		refused := entry.kill()
		if entry.zombie {
			continue
		}
		left.living++
		if refused {
			left.refused++
		}
	}
	return left
}

// endDescendants kills the descendants of root until none is alive, or until hopeless says to give up. It returns the
// number of descendants still alive.
func endDescendants(root int) (survivors int) {
	began := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, scanPause) {
		left := kill(descendants(allProcesses(), root))
		if left.living == 0 || left.hopeless(time.Since(began), refusedPatience) {
			return left.living
		}
		time.Sleep(pause)
	}
}

// kill sends SIGKILL to the process. It does nothing if the process has ended, even if another process has its number
// now. It reports whether the kernel refused the signal.
func (e processEntry) kill() (refused bool) {
	handle, err := unix.PidfdOpen(e.pid, 0)
	if err == nil {
		defer func() { _ = unix.Close(handle) }()
	}
	if now, gone := readProcess(e.pid); gone != nil || now.started != e.started {
		return false
	}
	if err == nil {
		err = unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		err = unix.Kill(e.pid, unix.SIGKILL) // a kernel, or a sandbox around this process, without pidfds
	}
	return errors.Is(err, os.ErrPermission)
}

// hasMark reports whether the process's environment had the entry mark when its program started. It is false for another
// user's process, whose environment cannot be read.
func (e processEntry) hasMark(mark string) bool { return e.environHas(mark + "\x00") }

// environHas reports whether the process's environment has an entry that begins with beginning, under the same
// conditions as hasMark.
func (e processEntry) environHas(beginning string) bool {
	environ, err := readProc(e.pid, "environ")
	return err == nil && (bytes.HasPrefix(environ, []byte(beginning)) || bytes.Contains(environ, []byte("\x00"+beginning)))
}
