package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// RemoveAll removes name in root with everything below it. A missing name is not an error.
//
// os.RemoveAll keeps one descriptor open for each level, so a directory that is 60,000 levels deep exhausts the
// descriptors of the process, with those of everything else in it. RemoveAll descends maxLevels, and moves what is
// below them up to the top.
func RemoveAll(root *os.Root, name string) error {
	if err := removeAll(root, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what agents have left: %w", err)
	}
	return nil
}

func removeAll(root *os.Root, name string) (err error) {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return root.Remove(name)
	}
	if err := Chmod(root, name, dirMode); err != nil {
		return err
	}
	top, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	err = (&remover{top: top}).empty()
	if err := errors.Join(err, top.Close()); err != nil {
		return err
	}
	return root.Remove(name)
}

// dirMode is the mode of a directory that is about to be emptied. An agent can have removed its own permissions.
const dirMode = 0o700

// entriesAtOnce is the number of directory entries that are held in memory.
const entriesAtOnce = 1024

// maxLevels is the number of levels that a remover descends. It holds two descriptors for each.
const maxLevels = 16

// remover empties the directory top.
type remover struct {
	top *os.Root
	// names counts the names that the remover has given to directories that it moved to the top.
	names int
}

// empty goes through top until nothing is left: directories are moved there meanwhile, and a directory that changes
// while it is read does not always show all entries.
func (r *remover) empty() error {
	for {
		did, err := r.clear(r.top, ".")
		if err != nil || !did {
			return err
		}
	}
}

// clear removes what is in dir, whose path below top is path. It reports whether there was anything.
func (r *remover) clear(dir *os.Root, path string) (did bool, err error) {
	opened, err := dir.Open(".")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	for {
		entries, err := opened.ReadDir(entriesAtOnce)
		for _, entry := range entries {
			did = true
			if err := r.remove(dir, filepath.Join(path, entry.Name()), entry.IsDir()); err != nil {
				return did, err
			}
		}
		if errors.Is(err, io.EOF) {
			return did, nil
		}
		if err != nil {
			return did, err
		}
	}
}

// remove removes an entry of dir, whose path below top is path. If dir is at the last level, remove moves a directory
// to the top instead.
func (r *remover) remove(dir *os.Root, path string, isDir bool) error {
	name := filepath.Base(path)
	err := dir.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) || !isDir {
		return ignoreMissing(err)
	}
	if err := Chmod(dir, name, dirMode); err != nil {
		return err
	}
	if strings.Count(path, string(filepath.Separator)) >= maxLevels {
		return r.moveUp(path)
	}
	below, err := dir.OpenRoot(name)
	if err != nil {
		return err
	}
	for did := true; did && err == nil; {
		did, err = r.clear(below, path)
	}
	if err := errors.Join(err, below.Close()); err != nil {
		return err
	}
	return dir.Remove(name)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// moveUp moves a directory to the top.
func (r *remover) moveUp(path string) error {
	name, err := r.freeName()
	if err != nil {
		return err
	}
	return r.top.Rename(path, name)
}

// freeName returns a name that nothing at the top has.
func (r *remover) freeName() (string, error) {
	for {
		r.names++
		name := ".removing-" + strconv.Itoa(r.names)
		_, err := r.top.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
}
