package store

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/filelock"
)

// lockPatience bounds how long Open waits for others who open the same database. A migration of a large one may take
// seconds.
const lockPatience = 30 * time.Second

// lockDirectory waits until nobody else has dir locked, and locks it until unlock is called. So no two processes create
// or migrate one database at the same time. SQLite's own locks cannot prevent that, because they end with each
// transaction. No lock file is left behind.
func lockDirectory(ctx context.Context, dir string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	lock, err := filelock.Wait(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("wait for the database's directory: %w", err)
	}
	return func() { _ = lock.Close() }, nil
}
