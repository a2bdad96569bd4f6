package cell

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/cell/files"
)

// workspace is an open Workspace.
//
// Agents can write in a workspace, so its content is not trusted. When a file is opened or removed, no link is
// followed.
type workspace struct {
	// all is the directory of all workspaces. own is the directory of this workspace.
	all, own *os.Root
	spec     Workspace
	// path is the absolute path of own.
	path string
}

const (
	// ignoreFile excludes the workspaces from git status, because agents can work in a repository.
	ignoreFile = ".gitignore"
	ignoreAll  = "*\n"
)

// openWorkspace sets up a workspace with its files. It removes files that an earlier process left in the workspace.
func openWorkspace(workDir string, spec Workspace) (w *workspace, err error) {
	work, err := os.OpenRoot(workDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	all, err := makeDir(work, spec.Parent)
	if err != nil {
		return nil, err
	}
	w = &workspace{all: all, spec: spec, path: filepath.Join(workDir, spec.Parent, spec.Name)}
	if err := w.setUp(); err != nil {
		return nil, errors.Join(fmt.Errorf("set up %s: %w", w.path, err), w.close())
	}
	return w, nil
}

// setUp empties the workspace, and writes the files.
func (w *workspace) setUp() error {
	if err := replaceFile(w.all, ignoreFile, []byte(ignoreAll)); err != nil {
		return err
	}
	if err := files.RemoveAll(w.all, w.spec.Name); err != nil {
		return err
	}
	own, err := makeDir(w.all, w.spec.Name)
	if err != nil {
		return err
	}
	w.own = own
	for name, content := range w.spec.Files {
		if err := replaceFile(w.own, name, content); err != nil {
			return err
		}
	}
	return nil
}

// asked returns the paths of the files that the agent is asked to leave in the workspace.
func (w *workspace) asked() []string {
	if w == nil || w.spec.Asked == "" {
		return nil
	}
	return []string{filepath.Join(w.path, w.spec.Asked)}
}

// makeDir opens the directory name in root, and creates it if it is missing. It first removes a file or a link of that
// name, because nobody but an agent can have created that file or link.
func makeDir(root *os.Root, name string) (*os.Root, error) {
	info, err := root.Lstat(name)
	if err == nil && !info.IsDir() {
		if err := root.Remove(name); err != nil {
			return nil, err
		}
	}
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	same, err := isStill(root, name, dir)
	if err == nil && !same {
		err = fmt.Errorf("%s was replaced while it was opened", name)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// isStill reports whether the named entry of root is still the directory that is open as dir. A link to that directory
// does not count.
func isStill(root *os.Root, name string, dir *os.Root) (bool, error) {
	found, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	opened, err := dir.Stat(".")
	if err != nil {
		return false, err
	}
	return os.SameFile(found, opened), nil
}

// replaceFile writes a file atomically. It replaces any file or link of the same name.
func replaceFile(root *os.Root, name string, content []byte) error {
	draft := name + "." + rand.Text()
	file, err := root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err == nil {
		err = root.Rename(draft, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(draft))
	}
	return nil
}

// take reads and removes a file that the agent may have left. It reads at most longest+1 bytes, so that the caller can
// detect a file that is longer than permitted. The content is nil if there is no file.
func (w *workspace) take(name string, longest int64) (content []byte, err error) {
	// Rename the file first, so that take removes the same file that it has read.
	taken := name + "." + rand.Text()
	if err := w.own.Rename(name, taken); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	content, err = readPlain(w.own, taken, longest)
	if err := errors.Join(err, files.RemoveAll(w.own, taken)); err != nil {
		return nil, err
	}
	return content, nil
}

// readPlain reads at most longest+1 bytes of a plain file.
func readPlain(root *os.Root, name string, longest int64) (content []byte, err error) {
	file, err := files.Open(root, name, files.AnyOwner)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return io.ReadAll(io.LimitReader(file, longest+1)) // never nil, so that an empty file differs from a missing one
}

// close removes the workspace, unless another process of the chain has replaced it in the meantime.
func (w *workspace) close() error {
	var err error
	if w.own != nil {
		var same bool
		if same, err = isStill(w.all, w.spec.Name, w.own); same {
			err = errors.Join(err, files.RemoveAll(w.all, w.spec.Name))
		}
		err = errors.Join(err, w.own.Close())
	}
	return errors.Join(err, w.all.Close())
}

// openWorkspace sets up the workspace of a run; nil if the run has none. If that fails, for example in a read-only
// working directory, openWorkspace returns nil, too.
func (r *run) openWorkspace(ctx context.Context) (opened *workspace) {
	if r.Workspace == nil {
		return nil
	}
	err := r.cli.AsUser(func() (err error) {
		opened, err = openWorkspace(r.Dir, *r.Workspace)
		return err
	})
	if err != nil {
		r.logger.WarnContext(ctx, "the agent gets no workspace", "workspace", r.Workspace.Name, "session_id",
			r.SessionID, "error", err)
		return nil
	}
	return opened
}

// closeWorkspace removes the workspace. It puts into the result the file that the agent was asked to leave, with
// secrets masked.
func (r *run) closeWorkspace(ctx context.Context, opened *workspace) {
	if opened == nil {
		r.result.LeftProblem = "there was no directory to leave it in"
		return
	}
	err := r.cli.AsUser(func() error {
		if opened.spec.Asked != "" {
			left, err := opened.take(opened.spec.Asked, opened.spec.MaxBytes)
			if r.result.Left = r.mask.JSON(left); err != nil {
				r.result.LeftProblem = r.mask.Text(err.Error())
			}
		}
		return opened.close()
	})
	if err != nil {
		r.logger.WarnContext(ctx, "the workspace could not be removed", "workspace", r.Workspace.Name, "session_id",
			r.SessionID,
			"error", err)
	}
}
