package guard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Files gives a guard read access to the file system.
type Files interface {
	// Resolve returns an absolute path without symbolic links and "..". Parts of the path that do not exist are kept
	// unchanged.
	Resolve(path string) (string, error)
	// Match returns the resolved paths of files that match a pattern. The argument most is the maximum number of paths.
	// If more files match, complete is false.
	Match(pattern string, most int) (paths []string, complete bool)
	// Below returns a file below the directory root for which the function report returns true; "" if it finds none.
	// The argument most is the maximum number of files to examine. If there are more files, complete is false.
	Below(root string, most int, report func(path string) bool) (found string, complete bool)
	// LookPath searches a list of directories, the argument path, for an executable program with this name. It returns
	// the path of the program, or "".
	LookPath(name string, path []string) string
	// ReadFile reads a whole file.
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

var errEnough = errors.New("enough")

// Match implements Files.
func (h Host) Match(pattern string, most int) (paths []string, complete bool) {
	base, rest := doublestar.SplitPattern(pattern)
	var options []doublestar.GlobOption
	if strings.Contains(rest, "**") { // find does not follow links; the shell's patterns do
		options = append(options, doublestar.WithNoFollow())
	}
	err := doublestar.GlobWalk(os.DirFS(base), rest, func(path string, _ fs.DirEntry) error {
		if len(paths) >= most {
			return errEnough
		}
		resolved, err := h.Resolve(filepath.Join(base, path))
		if err != nil {
			return err
		}
		paths = append(paths, resolved)
		return nil
	}, options...)
	return paths, err == nil
}

// Below implements Files.
func (Host) Below(root string, most int, report func(path string) bool) (found string, complete bool) {
	seen := 0
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // the agent cannot read it either
		}
		seen++
		if seen > most {
			return errEnough
		}
		if report(path) {
			found = path
			return fs.SkipAll
		}
		return nil
	})
	return found, err == nil
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

// ReadFile implements Files.
func (Host) ReadFile(path string) ([]byte, error) { return os.ReadFile(path) } //nolint:gosec // the guard reads configuration only
