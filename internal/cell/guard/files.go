package guard

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Files gives a guard read access to the file system.
type Files interface {
	// Resolve returns an absolute path without symbolic links and "..". Parts of the path that do not exist are kept
	// unchanged.
	Resolve(path string) (string, error)
	// Exists reports whether there is a file or directory at a path.
	Exists(path string) bool
	// LookPath searches a list of directories, the argument path, for an executable program with this name. It returns
	// the path of the program, or "".
	LookPath(name string, path []string) string
	// ReadFile reads a regular file.
	ReadFile(path string) ([]byte, error)
}

// Host is the file system of this host.
type Host struct{}

// maxLinks is the number of symbolic links that Linux follows in a path (path_resolution(7)).
const maxLinks = 40

// Resolve implements Files. Unlike filepath.EvalSymlinks it accepts paths whose last parts do not exist yet.
func (Host) Resolve(path string) (string, error) {
	resolved, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			resolved = filepath.Dir(resolved)
			continue
		}
		next := filepath.Join(resolved, part)
		target, err := os.Readlink(next)
		if err != nil { // not a link, or does not exist
			resolved = next
			continue
		}
		links++
		if links > maxLinks {
			return "", errors.New("too many symbolic links")
		}
		if filepath.IsAbs(target) {
			resolved = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return resolved, nil
}

// Exists implements Files.
func (Host) Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// LookPath implements Files.
func (Host) LookPath(name string, path []string) string {
	for _, dir := range path {
		candidate := filepath.Join(dir, name)
		if info, err := os.Stat(candidate); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return candidate
		}
	}
	return ""
}

// maxFile limits the size of a file that ReadFile reads, in bytes.
const maxFile = 4 << 20

// ReadFile implements Files. It reads regular files only, because agents can put other files at the path.
func (Host) ReadFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, syscall.O_NONBLOCK, 0) //nolint:gosec // the guard reads configuration only
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a file of usual kind and size")}
	}
	return io.ReadAll(io.LimitReader(file, maxFile))
}
