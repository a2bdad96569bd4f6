package cell

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/cell/files"
)

// openToOthers holds the permissions that other users have.
const openToOthers fs.FileMode = 0o077

// modeInterval is the time between two looks at the worker's files while an agent runs.
const modeInterval = time.Second

// modes guards the permissions of the worker's own files while agents run. Landlock does not restrict chmod, so an
// agent with the worker's user can open these files to all users of the host. It still cannot read them itself. Agents
// of another user cannot change them.
type modes struct {
	dirs []string
	// tree is the one of dirs that has thousands of directories, and no files.
	tree   string
	logger *slog.Logger
}

// newModes returns a guard of the directories in Options.Closed and ClosedTree. If agents have another user, it guards
// nothing.
func newModes(options Options) modes {
	m := modes{tree: options.ClosedTree, logger: options.Logger}
	if options.Driver.User != nil {
		return m
	}
	for _, dir := range append(slices.Clone(options.Closed), options.ClosedTree) {
		if info, err := os.Lstat(dir); dir != "" && err == nil && info.IsDir() && info.Mode()&openToOthers == 0 {
			m.dirs = append(m.dirs, dir) // a directory that was open before is so by the operator's choice
		}
	}
	return m
}

// watch mends the permissions until the returned function is called, and then once more.
func (m modes) watch(ctx context.Context, session string) (end func()) {
	if len(m.dirs) == 0 {
		return func() {}
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for ticker := time.NewTicker(modeInterval); ; {
			select {
			case <-ended:
				ticker.Stop()
				return
			case <-ticker.C:
				m.mend(ctx, session)
			}
		}
	}()
	return func() {
		close(ended)
		<-done
		m.mend(ctx, session)
	}
}

// mend takes the permissions of other users from the guarded directories and from the files in them.
func (m modes) mend(ctx context.Context, session string) {
	for _, dir := range m.dirs {
		changed, err := mendDir(dir, dir != m.tree)
		if len(changed) > 0 {
			m.logger.ErrorContext(ctx, "an agent had changed the permissions of the worker's files; now other users "+
				"are kept out again",
				"session_id", session, "files", strings.Join(changed, ", "))
		}
		if err != nil {
			m.logger.ErrorContext(ctx, "the worker's files cannot be closed to other users of this host; do it with "+
				"chmod",
				"session_id", session, "directory", dir, "error", err)
		}
	}
}

// mendDir closes a directory and, if it was open or has files (hasFiles), the regular files in it. It returns the paths
// that were open. It follows no symbolic link, so that an agent cannot make it change another file.
func mendDir(dir string, hasFiles bool) (changed []string, err error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrPermission) { // an agent can also take the owner's own permissions
		if err = os.Chmod(dir, 0o700); err == nil { //nolint:gosec // a directory
			root, err = os.OpenRoot(dir)
		}
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	open, err := closeToOthers(root, ".")
	if open {
		changed = append(changed, dir)
	}
	if err != nil || !open && !hasFiles {
		return changed, err
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		name := entry.Name()
		mended, failure := closeToOthers(root, name)
		if mended {
			changed = append(changed, filepath.Join(dir, name))
		}
		if !errors.Is(failure, fs.ErrNotExist) { // a file of the database that is gone again
			err = errors.Join(err, failure)
		}
	}
	return changed, err
}

// closeToOthers takes the permissions of other users from a file of the directory root, or from root itself, whose name
// is ".". It reports whether they had any.
func closeToOthers(root *os.Root, name string) (changed bool, err error) {
	info, err := root.Lstat(name)
	if err != nil {
		return false, err
	}
	mode := info.Mode().Perm() &^ openToOthers
	if name == "." {
		mode |= 0o700
	}
	if mode == info.Mode().Perm() {
		return false, nil
	}
	err = files.Chmod(root, name, mode)
	return err == nil, err
}
