package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	// lockPatience is how long Open waits for others who open the same database: a
	// migration of a large one may take seconds.
	lockPatience = 30 * time.Second
	lockInterval = 10 * time.Millisecond
)

// lockDirectory waits until nobody else holds dir, and holds it until unlock is called. It keeps
// two processes from creating or migrating one database at the same time, which
// SQLite's own locks cannot do across several transactions. The kernel drops the lock
// of a process that dies, and no lock file stays behind.
func lockDirectory(ctx context.Context, dir string) (unlock func(), err error) {
	handle, err := os.Open(dir) //nolint:gosec // the operator chooses the path
	if err != nil {
		return nil, fmt.Errorf("lock the database's directory: %w", err)
	}
	if err := waitForLock(ctx, handle); err != nil {
		_ = handle.Close()
		return nil, fmt.Errorf("lock the database's directory %s: %w", dir, err)
	}
	return func() { _ = handle.Close() }, nil // closing unlocks
}

func waitForLock(ctx context.Context, handle *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	ticker := time.NewTicker(lockInterval)
	defer ticker.Stop()
	for {
		err := syscall.Flock(int(handle.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("another process has it: %w", ctx.Err())
		}
	}
}
