package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

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

// killDescendants kills what comes of root, as far as one look shows it, and returns how many of
// those had not ended yet.
func killDescendants(root int) (living int) {
	for _, entry := range descendants(allProcesses(), root) {
		// Also what looks ended: only its first thread may be.
		entry.kill()
		if !entry.zombie {
			living++
		}
	}
	return living
}

// kill sends SIGKILL to the process, and to no other that has its number now.
func (e processEntry) kill() {
	handle, err := unix.PidfdOpen(e.pid, 0)
	if err == nil {
		defer func() { _ = unix.Close(handle) }()
	}
	if now, gone := readProcess(e.pid); gone != nil || now.started != e.started {
		return
	}
	if err != nil || unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0) != nil {
		_ = unix.Kill(e.pid, unix.SIGKILL) // a kernel, or a sandbox, without handles
	}
}

// hasMark reports whether the process's environment, as it was when its program started, has the
// entry mark. Of another user's process that cannot be told.
func (e processEntry) hasMark(mark string) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", e.pid))
	return err == nil && strings.Contains("\x00"+string(environ), "\x00"+mark+"\x00")
}
