package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processEntry is a process as /proc shows it.
type processEntry struct {
	pid, parent int
	// started tells two processes apart that had the same number one after the other.
	started uint64
	zombie  bool
}

// checkProc fails unless /proc shows the processes of this process's own namespace: numbers of
// another one would be those of innocent processes.
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

// allProcesses lists what /proc shows. It is no snapshot: processes come and go meanwhile.
func allProcesses() []processEntry {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	var found []processEntry
	for _, name := range names {
		if pid := number(name); pid > 0 {
			if entry, err := readProcess(pid); err == nil {
				found = append(found, entry)
			}
		}
	}
	return found
}

// readProcess reads the entry of one process.
func readProcess(pid int) (processEntry, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processEntry{}, err
	}
	// The second field is the program's name in parentheses, and may hold anything. The third is
	// the state, the fourth the parent, the 22nd the time of the start.
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

// descendants returns those of all that come of one of the roots, without these.
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
	// refusedPatience is how long to go on about processes that may not be killed: another user's.
	// They may end by themselves.
	refusedPatience = 5 * time.Second
	// deathPatience is how long to wait for processes that were sent SIGKILL and have not died: they
	// wait for a disk, or a busy machine has no time for them to die.
	deathPatience = 30 * time.Second
	// scanPause is the longest pause between two looks at what is left. A look takes milliseconds.
	scanPause = 100 * time.Millisecond
)

// remains counts the processes that had not ended when they were last looked at, and killed.
type remains struct {
	living int
	// refused are those that this process may not kill.
	refused int
}

// hopeless reports whether it is no use to wait any longer, after patience with those that are refused.
func (r remains) hopeless(waited, patience time.Duration) bool {
	return waited > deathPatience || waited > patience && r.refused > 0 && r.refused == r.living
}

// kill kills entries, and returns what lives of them.
func kill(entries []processEntry) (left remains) {
	for _, entry := range entries {
		// Also what looks ended: only its first thread may be.
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

// endDescendants kills what comes of root until there is nothing of it left, or no use in it, and
// returns how much is left.
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

// kill sends SIGKILL to the process, and to no other that has its number now, and reports whether
// that is refused.
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
		err = unix.Kill(e.pid, unix.SIGKILL) // a kernel, or a sandbox, without handles
	}
	return errors.Is(err, os.ErrPermission)
}

// hasMark reports whether the process's environment, as it was when its program started, has the
// entry mark. Of another user's process that cannot be told.
func (e processEntry) hasMark(mark string) bool { return e.environHas(mark + "\x00") }

// environHas is hasMark for an entry that begins with beginning.
func (e processEntry) environHas(beginning string) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", e.pid))
	return err == nil && strings.Contains("\x00"+string(environ), "\x00"+beginning)
}
