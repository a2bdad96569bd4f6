package agent

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// workspace is the directory in which the agent of a session gets and leaves files: one for each chain, below the agents'
// working directory. It lasts as long as the session's process, because a chain never runs two of them at a time.
//
// Agents may write there, so nothing in it is trusted: no link is followed when a file is opened or removed.
type workspace struct {
	// all is the directory of all workspaces, and own is this one.
	all, own *os.Root
	name     string
	// path is the absolute path of own.
	path string
}

const (
	// ignoreFile keeps a repository in which agents work clean.
	ignoreFile = ".gitignore"
	ignoreAll  = "*\n"
)

// openWorkspace sets up the workspace of a chain with the file of cooldowns, and removes what an earlier process left there.
func openWorkspace(workDir, chainID string, cooldowns []escalation.ServiceState) (w *workspace, err error) {
	work, err := os.OpenRoot(workDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	all, err := makeDir(work, activities.ChainsDir)
	if err != nil {
		return nil, err
	}
	name := activities.ChainDirName(chainID)
	w = &workspace{all: all, name: name, path: filepath.Join(workDir, activities.ChainsDir, name)}
	if err := w.setUp(cooldowns); err != nil {
		return nil, errors.Join(fmt.Errorf("set up %s: %w", w.path, err), w.close())
	}
	return w, nil
}

// setUp removes what is in the workspace, and writes the file of cooldowns.
func (w *workspace) setUp(cooldowns []escalation.ServiceState) error {
	if err := replaceFile(w.all, ignoreFile, []byte(ignoreAll)); err != nil {
		return err
	}
	if err := w.all.RemoveAll(w.name); err != nil {
		return err
	}
	own, err := makeDir(w.all, w.name)
	if err != nil {
		return err
	}
	w.own = own
	state, err := json.MarshalIndent(escalation.NewCooldownState(cooldowns), "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(w.own, activities.CooldownFile, append(state, '\n'))
}

// asked returns the files that the run asks the agent to leave there.
func (w *workspace) asked(run activities.AgentRun) []string {
	if w == nil || !run.LeavesHandoff {
		return nil
	}
	return []string{filepath.Join(w.path, activities.HandoffFile)}
}

// makeDir opens a directory of root, and makes it if need be. It removes a file or a link of that name, which only an agent
// can have put there.
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

// isStill reports whether name in root is still the directory that dir has open, and no link to it.
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

// replaceFile writes a file atomically, in place of whatever has its name.
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

// take reads and removes a file that the agent may have left. It reads at most one byte beyond longest.
func (w *workspace) take(name string, longest int64) activities.LeftFile {
	// It is renamed first, so that the file that is read is the one that is removed.
	taken := name + "." + rand.Text()
	if err := w.own.Rename(name, taken); errors.Is(err, fs.ErrNotExist) {
		return activities.LeftFile{}
	} else if err != nil {
		return activities.LeftFile{Problem: err.Error()}
	}
	content, err := readRegular(w.own, taken, longest)
	if err := errors.Join(err, w.own.RemoveAll(taken)); err != nil {
		return activities.LeftFile{Problem: err.Error()}
	}
	return activities.LeftFile{Content: content}
}

// readRegular reads at most one byte beyond longest of a regular file. It follows no link and waits for no pipe.
func readRegular(root *os.Root, name string, longest int64) (content []byte, err error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	opened, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(info, opened) {
		return nil, errors.New("it was replaced while it was opened")
	}
	return io.ReadAll(io.LimitReader(file, longest+1)) // never nil: empty is not absent
}

// close removes the workspace, unless another process of the chain has set up its own in the meantime.
func (w *workspace) close() error {
	var err error
	if w.own != nil {
		var same bool
		if same, err = isStill(w.all, w.name, w.own); same {
			err = errors.Join(err, w.all.RemoveAll(w.name))
		}
		err = errors.Join(err, w.own.Close())
	}
	return errors.Join(err, w.all.Close())
}
