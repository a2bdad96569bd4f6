package cell

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// reserveBytes is the space that is held for the server and the records.
	reserveBytes = 64 << 20
	// reserveFree is the free space below which the reserve is given to them. Writing the records of a session's end
	// takes less.
	reserveFree = 16 << 20
	// reserveInterval is the time between two looks at the free space. A fast disk takes gigabytes in it, so the quota
	// of a session is what keeps the disk from being full; the reserve is for what other programs write, too.
	reserveInterval = time.Second
)

// reserve holds space on the disk of the state directory. When the disk is full, the space is given to Temporal and the
// records, so that they continue while sessions are ended and people make room.
type reserve struct {
	path   string
	given  atomic.Bool
	logger *slog.Logger
	idle   sync.WaitGroup
	// stop is closed to end the watch.
	stop     chan struct{}
	stopOnce sync.Once
}

// openReserve takes the space, if there is enough, and begins to watch the disk. The caller must close the reserve.
func openReserve(dir string, logger *slog.Logger) *reserve {
	r := &reserve{path: filepath.Join(dir, "reserve"), logger: logger, stop: make(chan struct{})}
	r.look()
	r.idle.Go(r.watch)
	return r
}

// used reports whether the disk is full.
func (r *reserve) used() bool { return r != nil && r.given.Load() }

// close stops watching. The space stays reserved for the next worker.
func (r *reserve) close() {
	if r == nil {
		return
	}
	r.stopOnce.Do(func() { close(r.stop) })
	r.idle.Wait()
}

func (r *reserve) watch() {
	ticker := time.NewTicker(reserveInterval)
	defer ticker.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-ticker.C:
			r.look()
		}
	}
}

// look gives or takes the reserve, by the free space of the disk.
func (r *reserve) look() {
	var disk unix.Statfs_t
	if unix.Statfs(filepath.Dir(r.path), &disk) != nil {
		return
	}
	free := int64(disk.Bavail) * int64(disk.Bsize) //nolint:gosec,unconvert // disks are smaller; types differ between systems
	held := isHeld(r.path)
	switch {
	case free < reserveFree:
		if !r.given.Swap(true) {
			r.logger.Error("the disk of the state directory is full; make room there",
				"directory", filepath.Dir(r.path), "free_bytes", free)
		}
		if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.logger.Error("the reserved space could not be given to the records", "error", err)
		}
	case held:
		r.given.Store(false)
	case free > 2*reserveBytes:
		take(r.path)
		r.given.Store(false)
	}
}

func isHeld(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Size() == reserveBytes
}
