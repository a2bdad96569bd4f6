// Package filelock locks files and directories. A lock excludes other processes, and other users of this package in the
// same process.
//
// The kernel releases a lock when the process that holds the lock ends, for whatever reason. So a lock file that a dead
// process has left behind is not locked.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// ErrHeld means that another process, or another user of this package, holds the lock. The errors of Create, Try and
// Wait wrap ErrHeld in that case.
var ErrHeld = errors.New("another process holds the lock")

// retryInterval is the time between two attempts of a call of Wait whose context can end.
const retryInterval = 10 * time.Millisecond

// Lock is a held lock.
type Lock struct{ flock *flock.Flock }

// Create locks the file called name. If the file is missing, Create creates it with permissions for its owner only. The
// directory must exist. If somebody else has the lock, the error wraps ErrHeld.
func Create(name string) (*Lock, error) {
	return try(flock.New(name, flock.SetFlag(os.O_RDWR|os.O_CREATE), flock.SetPermissions(0o600)))
}

// Try locks an existing file or directory. If somebody else has the lock, the error wraps ErrHeld.
func Try(name string) (*Lock, error) { return try(existing(name)) }

// Wait locks an existing file or directory as soon as nobody else has locked it. If ctx ends during the wait, the error
// wraps ErrHeld and the context's error. If ctx has ended before the call, the error wraps only the context's error. If
// ctx can never end, Wait is faster, because the kernel wakes this process up.
func Wait(ctx context.Context, name string) (*Lock, error) {
	if err := ctx.Err(); err != nil {
		return nil, failed(name, err)
	}
	f := existing(name)
	var err error
	if ctx.Done() == nil {
		err = f.Lock()
	} else {
		_, err = f.TryLockContext(ctx, retryInterval)
	}
	switch {
	case err == nil:
		return &Lock{f}, nil
	case errors.Is(err, ctx.Err()):
		return nil, failed(name, fmt.Errorf("%w: %w", ErrHeld, err))
	default:
		return nil, failed(name, err)
	}
}

// IsHeld reports whether somebody has locked an existing file or directory.
func IsHeld(name string) (bool, error) {
	f := existing(name)
	free, err := f.TryRLock() // a shared lock, so that two concurrent calls do not see each other as holders
	if err != nil {
		return false, failed(name, err)
	}
	return !free, f.Close()
}

// Close releases the lock.
func (l *Lock) Close() error { return l.flock.Close() }

func existing(name string) *flock.Flock { return flock.New(name, flock.SetFlag(os.O_RDONLY)) }

func try(f *flock.Flock) (*Lock, error) {
	locked, err := f.TryLock()
	switch {
	case err != nil:
		return nil, failed(f.Path(), err)
	case !locked:
		return nil, failed(f.Path(), ErrHeld)
	}
	return &Lock{f}, nil
}

func failed(name string, err error) error { return fmt.Errorf("lock %s: %w", name, err) }
