package agent

import (
	"context"
	"fmt"
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

// quotaError means that a session was ended, because it stored too much.
type quotaError struct{ what string }

// Error implements error.
func (e *quotaError) Error() string {
	return fmt.Sprintf("the agent was ended because its session stored %s (CLAUDEOPS_SESSION_DISK)", e.what)
}

// quota returns what a session may store now.
func (r *Runner) quota() files.Quota {
	bytes := int64(r.settings.SessionDisk) << 20
	if r.reserve.used() {
		bytes = min(bytes, scarceBytes)
	}
	return files.Quota{Bytes: bytes, Files: maxFiles, Depth: maxDepth}
}

// watchUsage returns a context that ends with a *quotaError when the session stores too much in its own directories. The
// caller must call stop.
func (r *Runner) watchUsage(ctx context.Context, own *private, opened *workspace) (limited context.Context, stop func()) {
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
			what, err := storedTooMuch(own, opened, r.quota())
			if err != nil {
				r.logger.WarnContext(ctx, "what a session stores could not be measured", "session_id", own.id, "error", err)
			}
			if what != "" {
				end(&quotaError{what})
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
