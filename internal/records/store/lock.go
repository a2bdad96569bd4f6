package store

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/filelock"
)

// lockPatience limits how long Open waits for other processes that open the same database. Another process can be
// migrating a large database, which takes seconds.
const lockPatience = 30 * time.Second

// lockDirectory waits until no other process has locked dir, and then locks dir until the caller calls unlock. So no
// two processes create or migrate one database at the same time. SQLite's own locks cannot prevent that, because they
// end with each transaction. lockDirectory leaves no lock file behind.
func lockDirectory(ctx context.Context, dir string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	lock, err := filelock.Wait(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("wait for the database's directory: %w", err)
	}
	return func() { _ = lock.Close() }, nil
}
