package cell

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/claudeops/claudeops/internal/cell/files"
	"github.com/claudeops/claudeops/internal/filelock"
)

// socketsPrefix begins the names of the directories with the sockets of guards.
const socketsPrefix = tempPrefix + "guard-"

// socketDir is the directory of a guard's sockets. The lock tells other workers that its worker lives.
type socketDir struct {
	path string
	lock *filelock.Lock
}

// newSocketDir makes a directory below the system's directory for temporary files: a path below the state directory
// could be too long for a socket.
//
// newSocketDir also removes the directories that killed workers have left. Each of them would make the start of every
// later session slower, because a sandbox hides them one by one.
func newSocketDir(logger *slog.Logger) (socketDir, error) {
	if err := sweepSocketDirs(os.TempDir()); err != nil {
		logger.Warn("the directories of killed workers could not be removed", "error", err)
	}
	var failed error
	for range socketDirTries {
		path, err := os.MkdirTemp("", socketsPrefix)
		if err != nil {
			return socketDir{}, fmt.Errorf("make the directory of the guard's sockets: %w", err)
		}
		dir, err := lockSocketDir(path)
		if err == nil {
			return dir, nil
		}
		failed = errors.Join(err, dir.close())
	}
	return socketDir{}, fmt.Errorf("lock the directory of the guard's sockets: %w", failed)
}

// socketDirTries limits the directories that newSocketDir makes: another worker that starts can take a new one for the
// remains of a killed worker.
const socketDirTries = 20

func lockSocketDir(path string) (dir socketDir, err error) {
	dir.path = path
	if dir.lock, err = filelock.Try(path); err != nil {
		return dir, err
	}
	return dir, passThrough(path)
}

// close removes the directory.
func (d socketDir) close() error {
	err := os.RemoveAll(d.path)
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	return err
}

// sweepSocketDirs removes the directories below parent whose workers were killed.
func sweepSocketDirs(parent string) error {
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(parent, socketsPrefix+"*"))
	for _, path := range found {
		if !isOwnDir(path) {
			continue
		}
		lock, failed := filelock.Try(path)
		if failed != nil { // its worker lives
			continue
		}
		err = errors.Join(err, files.RemoveAll(root, filepath.Base(path)), lock.Close())
	}
	return errors.Join(err, root.Close())
}

// isOwnDir reports whether a path is a directory of this process's user. Every user can make something of that name,
// such as a pipe or a link, but cannot replace what belongs to another user.
func isOwnDir(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	return is && int(stat.Uid) == os.Geteuid()
}
