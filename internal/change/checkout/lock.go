package checkout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/filelock"
)

// lock is the lock on a place. The lock's file contains the id of the session that holds the lock. When the session's
// process ends, the kernel releases the lock, but the id remains in the file.
type lock struct {
	held *filelock.Lock
	file string
}

// errImpatient is the cause that ends a wait after Options.Patience.
var errImpatient = errors.New("the place did not become free in time")

// lock locks a directory for a session. The lock holds for all processes that share Options.Locks. If another session
// has the lock, the method calls the function waiting with a description of that session. Then it waits for the lock.
// If that session's process ended without a release, the method ends what the session has left running.
func (k *Keeper) lock(ctx context.Context, directory, session string, waiting func(what string)) (*lock, error) {
	file := lockFile(k.options, directory)
	held, err := filelock.Create(file)
	if errors.Is(err, filelock.ErrHeld) {
		busy := &BusyError{Directory: directory, Holder: holderOf(file)}
		waiting(holderName(busy.Holder) + " repairs in " + directory)
		patient, cancel := context.WithTimeoutCause(ctx, k.options.Patience, errImpatient)
		defer cancel()
		held, err = filelock.Wait(patient, file)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(context.Cause(patient), errImpatient):
			return nil, busy
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s for a repair: %w", directory, err)
	}
	if before := holderOf(file); before != "" && before != session && k.options.End != nil {
		if err := k.options.End(before); err != nil {
			return nil, errors.Join(err, held.Close())
		}
	}
	if err := os.WriteFile(file, []byte(session), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s for a repair: %w", directory, err), held.Close())
	}
	return &lock{held: held, file: file}, nil
}

// lockFile returns the path of the lock file of a directory.
func lockFile(options Options, directory string) string {
	sum := sha256.Sum256([]byte(directory))
	return filepath.Join(options.Locks, hex.EncodeToString(sum[:16]))
}

// holderOf returns the id in a lock file; "" if the file has no id.
func holderOf(file string) string {
	content, err := os.ReadFile(file) //nolint:gosec // a file of the worker
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// release removes the id from the lock file, and releases the lock.
func (l *lock) release() error {
	return errors.Join(os.Truncate(l.file, 0), l.held.Close())
}
