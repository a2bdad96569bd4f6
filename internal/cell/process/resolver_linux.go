package process

import (
	"io/fs"
	"os"
	"path/filepath"
)

// resolver resolves symbolic links like filepath.EvalSymlinks. It remembers the result for each directory, because most
// hidden paths are in a few directories. Use a new resolver for each sandbox, because symbolic links can change between
// two sandboxes.
type resolver map[string]resolvedDir

// resolvedDir is the result of filepath.EvalSymlinks for a directory.
type resolvedDir struct {
	path string
	err  error
}

// resolve returns path with symbolic links resolved.
func (r resolver) resolve(path string) (string, error) {
	dir, name := filepath.Split(path)
	if dir == "" || name == "" || name == "." || name == ".." {
		return filepath.EvalSymlinks(path)
	}
	parent, known := r[dir]
	if !known {
		parent.path, parent.err = filepath.EvalSymlinks(dir)
		r[dir] = parent
	}
	if parent.err != nil {
		return "", parent.err
	}
	place := filepath.Join(parent.path, name)
	info, err := os.Lstat(place)
	switch {
	case err != nil:
		return "", err
	case info.Mode()&fs.ModeSymlink != 0:
		return filepath.EvalSymlinks(place)
	}
	return place, nil
}
