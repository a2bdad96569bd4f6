package supervisor

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

// desk is the directory in which the agent of a session gets and leaves files: one for each chain,
// below the agents' working directory. It lasts as long as the session's process, because a chain
// never runs two of them at a time.
//
// Agents may write there. So nothing in it is trusted: what is opened or removed is what is meant,
// and never what a link leads to.
type desk struct {
	// all holds the desks, and own is this one.
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

// openDesk sets up the desk of a chain, with the cooldowns on it and nothing else: what an earlier
// process left there is removed.
func openDesk(workDir, chainID string, cooldowns []escalation.ServiceState) (d *desk, err error) {
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
	d = &desk{all: all, name: name, path: filepath.Join(workDir, activities.ChainsDir, name)}
	if err := d.setUp(cooldowns); err != nil {
		return nil, errors.Join(fmt.Errorf("set up %s: %w", d.path, err), d.close())
	}
	return d, nil
}

func (d *desk) setUp(cooldowns []escalation.ServiceState) error {
	if err := replaceFile(d.all, ignoreFile, []byte(ignoreAll)); err != nil {
		return err
	}
	if err := d.all.RemoveAll(d.name); err != nil {
		return err
	}
	own, err := makeDir(d.all, d.name)
	if err != nil {
		return err
	}
	d.own = own
	state, err := json.MarshalIndent(escalation.NewCooldownState(cooldowns), "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(d.own, activities.CooldownFile, append(state, '\n'))
}

// makeDir opens a directory of root, and makes it if need be. A file or a link of that name, which
// only an agent can have put there, gives way.
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

// isStill reports whether what root calls name, itself and not what it links to, is the directory
// that dir has open.
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

// replaceFile writes a file that is there with its whole content or not at all, in place of
// whatever has its name.
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

// take reads and removes the file that the agent left, if it did. It reads no more than one byte
// beyond longest.
func (d *desk) take(name string, longest int64) activities.LeftFile {
	// The name is taken away first, so that what is read is what is removed.
	taken := name + "." + rand.Text()
	if err := d.own.Rename(name, taken); errors.Is(err, fs.ErrNotExist) {
		return activities.LeftFile{}
	} else if err != nil {
		return activities.LeftFile{Problem: err.Error()}
	}
	content, err := readRegular(d.own, taken, longest)
	if err := errors.Join(err, d.own.RemoveAll(taken)); err != nil {
		return activities.LeftFile{Problem: err.Error()}
	}
	return activities.LeftFile{Content: content}
}

// readRegular reads up to one byte more than longest of a regular file. It follows no link and
// waits for no pipe.
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

// close removes the desk, unless another process of the chain has set up its own in the meantime.
func (d *desk) close() error {
	var err error
	if d.own != nil {
		var same bool
		if same, err = isStill(d.all, d.name, d.own); same {
			err = errors.Join(err, d.all.RemoveAll(d.name))
		}
		err = errors.Join(err, d.own.Close())
	}
	return errors.Join(err, d.all.Close())
}
