package process

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/cell/process/proctable"
)

// cleanScans is the number of consecutive scans that must find nothing before EndMarked returns. One scan is not
// enough, because a program shows no environment for a moment after its start.
const cleanScans = 3

// EndMarked kills every process whose environment contains mark, an entry of the form "NAME=value". It also kills the
// descendants of these processes. It returns the number of killed processes. Use EndMarked for processes that an
// earlier process of this program left behind. Without superuser rights EndMarked misses the processes of other users.
// An error means that the search failed, or that some processes could not be killed.
func EndMarked(mark string) (ended int, err error) {
	if name, value, _ := strings.Cut(mark, "="); name == "" || value == "" {
		return 0, fmt.Errorf("the mark %q is not NAME=value", mark)
	}
	if err := proctable.Check(); err != nil {
		return 0, fmt.Errorf("look for processes marked %s: %w", mark, err)
	}
	known := map[proctable.Entry]bool{}
	began := time.Now()
	for clean, pause := 0, time.Millisecond; ; pause = min(2*pause, proctable.ScanPause) {
		found := marked(mark)
		for _, entry := range found {
			known[proctable.Entry{PID: entry.PID, Started: entry.Started}] = true
		}
		left := proctable.Kill(found)
		clean++
		switch {
		case left.Living > 0 && left.Hopeless(time.Since(began), proctable.RefusedPatience):
			return len(known) - left.Living, fmt.Errorf("%d processes marked %s: %w", left.Living, mark, errUnkillable)
		case left.Living > 0:
			clean = 0
		case clean == cleanScans:
			return len(known), nil
		}
		time.Sleep(pause)
	}
}

var errUnkillable = errors.New("they could not be killed")

// marked returns the living processes with the mark, and their descendants. It omits this process.
func marked(mark string) []proctable.Entry {
	if !anyMarked(mark) { // usually no process has the mark, and a full scan costs twice as much
		return nil
	}
	all := proctable.All()
	var roots []int
	var living []proctable.Entry
	add := func(entry proctable.Entry) {
		if !entry.Zombie && entry.PID != os.Getpid() {
			living = append(living, entry)
		}
	}
	for _, entry := range all {
		if entry.PID != os.Getpid() && entry.HasMark(mark) {
			roots = append(roots, entry.PID)
			add(entry)
		}
	}
	for _, entry := range proctable.Descendants(all, roots...) {
		if !entry.HasMark(mark) {
			add(entry)
		}
	}
	return living
}

// anyMarked reports whether a process other than this one has the mark.
func anyMarked(mark string) bool {
	return slices.ContainsFunc(proctable.Numbers(), func(pid int) bool {
		return pid != os.Getpid() && proctable.Entry{PID: pid}.HasMark(mark)
	})
}
