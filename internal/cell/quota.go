package cell

import (
	"cmp"
	"context"
	"math"
	"os"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/files"
)

const (
	// usageInterval is the time between two measurements of what a session stores.
	usageInterval = time.Second
	// maxFiles and maxDepth are far above what a clone of a large repository needs.
	maxFiles, maxDepth = 500_000, 200
	// scarceBytes is the quota of each session while the disk is full. A session that only reports needs less.
	scarceBytes = 64 << 20
)

// StorageError means that an agent was ended, because its session stored more than Options.SessionBytes.
type StorageError struct{ What string }

// Error implements error.
func (e *StorageError) Error() string {
	return "the agent was ended because its session stored " + e.What
}

// quota returns what a session may store now.
func (h *Host) quota() files.Quota {
	bytes := cmp.Or(h.sessionBytes, math.MaxInt64)
	if h.reserve.used() {
		bytes = min(bytes, scarceBytes)
	}
	return files.Quota{Bytes: bytes, Files: maxFiles, Depth: maxDepth}
}

// watchUsage returns a context that ends with a *StorageError when the session stores too much in its own directories.
// The caller must call stop.
func (h *Host) watchUsage(ctx context.Context, own *private, opened *workspace) (limited context.Context, stop func()) {
	limited, end := context.WithCancelCause(ctx)
	var idle sync.WaitGroup
	idle.Go(func() {
		ticker := time.NewTicker(usageInterval)
		defer ticker.Stop()
		for {
			select {
			case <-limited.Done():
				return
			case <-ticker.C:
			}
			what, err := storedTooMuch(own, opened, h.quota())
			if err != nil {
				h.logger.WarnContext(ctx, "what a session stores could not be measured", "session_id", own.id, "error",
					err)
			}
			if what != "" {
				end(&StorageError{what})
			}
		}
	})
	return limited, func() {
		end(nil)
		idle.Wait()
	}
}

// storedTooMuch says by what a session exceeds its quota; "" if it does not.
func storedTooMuch(own *private, opened *workspace, quota files.Quota) (what string, err error) {
	usage := files.Usage{Bytes: claude.DeletedBytes(own.id)}
	for _, dir := range []string{own.path, own.temporary.path} {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return "", err
		}
		err = usage.Measure(root, quota)
		_ = root.Close()
		if err != nil {
			return "", err
		}
	}
	if opened != nil {
		if err := usage.Measure(opened.own, quota); err != nil {
			return "", err
		}
	}
	return usage.Exceeds(quota), nil
}
