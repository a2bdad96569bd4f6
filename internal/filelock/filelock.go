// Package filelock locks files and directories between processes, and between users of this package in one process.
//
// The kernel releases a lock when the process that holds it ends, however it ends. So a lock file that is left behind
// means nothing.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// ErrHeld is in the error for a lock that somebody else holds.
var ErrHeld = errors.New("another process holds the lock")

// retryInterval is the time between two attempts of a Wait that can be cancelled.
const retryInterval = 10 * time.Millisecond

// Lock is a lock that is held.
type Lock struct{ flock *flock.Flock }

// Create locks the file of that name. A missing file is created for its owner only; its directory must exist. The error
// wraps ErrHeld if somebody else has the lock.
func Create(name string) (*Lock, error) {
	return try(flock.New(name, flock.SetFlag(os.O_RDWR|os.O_CREATE), flock.SetPermissions(0o600)))
}

// Try locks an existing file or directory, as Create does.
func Try(name string) (*Lock, error) { return try(existing(name)) }

// Wait locks an existing file or directory as soon as nobody else has it locked. If ctx ends before, the error wraps
// ErrHeld and the context's error. A ctx that never ends makes Wait faster: the kernel wakes it up.
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

// IsHeld reports whether somebody has an existing file or directory locked.
func IsHeld(name string) (bool, error) {
	f := existing(name)
	free, err := f.TryRLock() // shared, so that two who ask at once do not take each other for a holder
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
