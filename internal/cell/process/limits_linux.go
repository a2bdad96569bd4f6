package process

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/cell/process/proctable"
)

// limitInterval is the time between two looks at the processes of a tree with limits.
const limitInterval = 50 * time.Millisecond

// within returns a context that ends with a *LimitError when the tree of a root exceeds its limits. The caller must
// call stop.
func within(ctx context.Context, root int, limits Limits) (limited context.Context, stop func()) {
	limited, cancel := context.WithCancelCause(ctx)
	go func() {
		for limited.Err() == nil {
			if reason := limits.exceeded(root); reason != "" {
				cancel(&LimitError{reason})
			}
			select {
			case <-limited.Done():
			case <-time.After(limitInterval):
			}
		}
	}()
	return limited, func() { cancel(context.Canceled) }
}

// exceeded says which limit the tree of a root exceeds; empty for none.
func (l Limits) exceeded(root int) string {
	var count, memory int64
	for _, entry := range proctable.Descendants(proctable.All(), root) {
		if entry.Zombie {
			continue
		}
		count++
		memory += resident(entry.PID)
	}
	switch {
	case l.Processes > 0 && count > l.Processes:
		return fmt.Sprintf("it had more than %d processes at once", l.Processes)
	case l.Memory > 0 && memory > l.Memory:
		return fmt.Sprintf("it used more than %d MiB of memory", l.Memory>>20)
	}
	return ""
}

// resident returns the memory of a process in bytes.
func resident(pid int) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(content))
	if err != nil || len(fields) < 2 {
		return 0
	}
	var pages int64
	_, _ = fmt.Sscan(fields[1], &pages)
	return pages * int64(os.Getpagesize())
}
