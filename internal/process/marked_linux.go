package process

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// cleanScans is the number of scans in a row that must find nothing before EndMarked returns. One scan is not enough,
// because for a moment after its start a program shows no environment.
const cleanScans = 3

// EndMarked kills every process whose environment has the entry mark ("NAME=value"), and their descendants. It returns
// the number of killed processes. Use it for processes that an earlier process of this program left behind. It finds
// only this user's processes, unless this user is the superuser. The error says that some could not be killed, or that
// the search failed.
func EndMarked(mark string) (ended int, err error) {
	if name, value, _ := strings.Cut(mark, "="); name == "" || value == "" {
		return 0, fmt.Errorf("the mark %q is not NAME=value", mark)
	}
	if err := checkProc(); err != nil {
		return 0, fmt.Errorf("look for processes marked %s: %w", mark, err)
	}
	known := map[processEntry]bool{}
	began := time.Now()
	for clean, pause := 0, time.Millisecond; ; pause = min(2*pause, scanPause) {
		found := marked(mark)
		for _, entry := range found {
			known[processEntry{pid: entry.pid, started: entry.started}] = true
		}
		left := kill(found)
		clean++
		switch {
		case left.living > 0 && left.hopeless(time.Since(began), refusedPatience):
			return len(known) - left.living, fmt.Errorf("%d processes marked %s: %w", left.living, mark, errUnkillable)
		case left.living > 0:
			clean = 0
		case clean == cleanScans:
			return len(known), nil
		}
		time.Sleep(pause)
	}
}

var errUnkillable = errors.New("they could not be killed")

// marked returns the living processes that have the mark, and their descendants, without this process.
func marked(mark string) []processEntry {
	if !anyMarked(mark) { // the common case, at half the price
		return nil
	}
	all := allProcesses()
	var roots []int
	var living []processEntry
	add := func(entry processEntry) {
		if !entry.zombie && entry.pid != os.Getpid() {
			living = append(living, entry)
		}
	}
	for _, entry := range all {
		if entry.pid != os.Getpid() && entry.hasMark(mark) {
			roots = append(roots, entry.pid)
			add(entry)
		}
	}
	for _, entry := range descendants(all, roots...) {
		if !entry.hasMark(mark) {
			add(entry)
		}
	}
	return living
}

// anyMarked reports whether a process other than this one has the mark.
func anyMarked(mark string) bool {
	return slices.ContainsFunc(processNumbers(), func(pid int) bool {
		return pid != os.Getpid() && processEntry{pid: pid}.hasMark(mark)
	})
}
