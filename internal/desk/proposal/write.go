package proposal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// diffContext is the number of unchanged lines around a change that a difference shows.
const diffContext = 2

// Change is the change of a file.
type Change struct {
	// Path is the absolute path of the file.
	Path string
	// Old and New are its content before and after the change; Old is empty for a new file.
	Old, New string

	exists bool
	// private reports that the file may hold secrets, so that others must not read it.
	private bool
	mode    fs.FileMode // of a new file
}

// There reports whether the file is there after the change.
func (c Change) There() bool { return c.exists || c.New != "" }

// Diff returns the change as a unified difference.
func (c Change) Diff() string {
	from := c.Path
	if !c.exists {
		from = "/dev/null"
	}
	text, err := udiff.ToUnified(from, c.Path, c.Old, udiff.Lines(c.Old, c.New), diffContext)
	if err != nil { // never for edits that Lines has made
		return c.New
	}
	return text
}

// WriteError says which file could not be written, and which had been.
type WriteError struct {
	Path    string
	Written []string
	Err     error
}

// Error implements error.
func (e *WriteError) Error() string {
	done := "no file was changed"
	if len(e.Written) > 0 {
		done = "written before that: " + strings.Join(e.Written, ", ")
	}
	return fmt.Sprintf("%s is as it was, because it cannot be written: %v; %s", e.Path, e.Err, done)
}

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }

// Write makes the changes, one file after the other. Each file is replaced as a whole: after a failure, a crash or a
// full disk it has its old or its new content. A failure is a *WriteError.
func Write(changes []Change) error {
	var written []string
	for _, change := range changes {
		if err := change.write(); err != nil {
			return &WriteError{change.Path, written, err}
		}
		written = append(written, change.Path)
	}
	return nil
}

// errChanged is the error for a file that somebody else has changed since the person has seen the difference.
var errChanged = errors.New("it has changed since it was shown: begin again")

// write replaces the file. An existing file keeps its mode and its owner.
func (c Change) write() error {
	path := c.Path
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // replace the file, not the link to it
	}
	if now, err := os.ReadFile(path); err == nil && string(now) != c.Old { //nolint:gosec // the operator's own file
		return errChanged
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, ".claudeops-init-*")
	if err != nil {
		return err
	}
	_, err = file.WriteString(c.New)
	if err = errors.Join(err, c.keepAccess(path, file), file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return syncDir(dir)
}

// keepAccess gives the new file the mode and the owner of the file that it replaces.
func (c Change) keepAccess(path string, file *os.File) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return file.Chmod(c.mode)
	}
	if err != nil {
		return err
	}
	mode := info.Mode().Perm()
	if c.private {
		mode &^= 0o007
	}
	return errors.Join(own(file, info), file.Chmod(mode))
}

// syncDir makes the new name of a file survive a crash.
func syncDir(dir string) error {
	opened, err := os.Open(dir) //nolint:gosec // the directory of the operator's own file
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}
