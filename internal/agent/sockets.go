package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/agentfiles"
	"github.com/claudeops/claudeops/internal/filelock"
)

// socketsPrefix begins the names of the directories with the sockets of guards.
const socketsPrefix = tempPrefix + "guard-"

// socketDir is the directory of a guard's sockets. The lock tells other workers that its worker lives.
type socketDir struct {
	path string
	lock *filelock.Lock
}

// newSocketDir makes a directory below the system's directory for temporary files: a path below the state directory could be too
// long for a socket.
//
// newSocketDir also removes the directories that killed workers have left. Each of them would make the start of every later
// session slower, because a sandbox hides them one by one.
func newSocketDir(logger *slog.Logger) (socketDir, error) {
	if err := sweepSocketDirs(os.TempDir()); err != nil {
		logger.Warn("the directories of killed workers could not be removed", "error", err)
	}
	for {
		dir, err := makeSocketDir()
		if !errors.Is(err, filelock.ErrHeld) && !errors.Is(err, os.ErrNotExist) { // another worker took it for the remains of a killed one
			return dir, err
		}
	}
}

func makeSocketDir() (dir socketDir, err error) {
	dir.path, err = os.MkdirTemp("", socketsPrefix)
	if err != nil {
		return dir, fmt.Errorf("make the directory of the guard's sockets: %w", err)
	}
	dir.lock, err = filelock.Try(dir.path)
	if err == nil {
		err = passThrough(dir.path)
	}
	if err != nil {
		return dir, errors.Join(err, dir.close())
	}
	return dir, nil
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
		lock, failed := filelock.Try(path)
		if failed != nil { // its worker lives, or it belongs to another user
			continue
		}
		err = errors.Join(err, agentfiles.RemoveAll(root, filepath.Base(path)), lock.Close())
	}
	return errors.Join(err, root.Close())
}
