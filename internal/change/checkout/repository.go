package checkout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// repository is a git repository with a working directory. All paths are absolute, with symbolic links resolved.
type repository struct {
	// top is the top of the working directory. dir is the directory .git in top.
	top, dir string
	// below is the path of the session's directory, relative to top.
	below string
}

// found is the repository of a directory, or the reason why the directory cannot have worktrees.
type found struct {
	repository repository
	problem    error
}

// findRepository looks for the repository that contains a directory. The result shared is the directory to lock if a
// session gets no worktree. Inside of a repository, it is the top of the repository's working directory. Outside of a
// repository, it is the given directory, with symbolic links resolved.
func findRepository(directory string) (shared string, in found) {
	resolved, err := filepath.EvalSymlinks(directory)
	if err != nil {
		return filepath.Clean(directory), found{problem: unavailable("%w", err)}
	}
	for top := resolved; ; top = filepath.Dir(top) {
		dir := filepath.Join(top, ".git")
		switch info, err := os.Lstat(dir); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return resolved, found{problem: unavailable("%w", err)}
		case !info.IsDir():
			return top, found{problem: unavailable("%s is not a directory, so %s is a worktree or a submodule itself",
				dir, top)}
		default:
			below, err := filepath.Rel(top, resolved)
			if err != nil {
				return resolved, found{problem: unavailable("%w", err)}
			}
			return top, found{repository: repository{top, dir, below}}
		}
		if top == filepath.Dir(top) {
			return resolved, found{problem: unavailable("%s is in no git repository", directory)}
		}
	}
}

// maxConfig limits the size of a git configuration, in bytes.
const maxConfig = 1 << 20

// check returns an *unavailableError if git could run programs that the repository names, or read objects outside of
// it. It reads the files with the rights of user.
func (r repository) check(user *process.User) error {
	err := process.AsUser(user, func() error {
		if _, err := os.Lstat(filepath.Join(r.dir, "commondir")); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s has its configuration elsewhere", r.dir)
		}
		for _, name := range []string{"alternates", "http-alternates"} {
			if _, err := os.Lstat(filepath.Join(r.dir, "objects", "info", name)); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s borrows objects from elsewhere (objects/info/%s)", r.dir, name)
			}
		}
		for _, name := range []string{"config", "config.worktree"} {
			if err := checkConfig(filepath.Join(r.dir, name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return unavailable("git is not used in %s: %w", r.top, err)
	}
	return nil
}

// checkConfig returns an error if a git configuration has a setting that could make git run a program. A missing file
// is no error.
func checkConfig(file string) error {
	content, err := readRegular(file, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if key := harmfulSetting(string(content)); key != "" {
		return fmt.Errorf("%s sets %s, which may run a program", file, key)
	}
	return nil
}

// readRegular reads a regular file of at most longest bytes. If the file is a symbolic link, readRegular fails.
func readRegular(file string, longest int64) ([]byte, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > longest {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", file, longest)
	}
	return os.ReadFile(file) //nolint:gosec // with the rights of the agents' user
}
