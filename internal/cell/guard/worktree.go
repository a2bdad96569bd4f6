package guard

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Worktree describes a git worktree that the supervisor has made for a session. All paths are absolute, with symbolic
// links resolved.
type Worktree struct {
	// Top is the worktree's top directory.
	Top string
	// Origin is the directory that the worktree replaces. The agent may read Origin, but may not change it. In Origin
	// the agent may also run commands such as docker compose, which act on services and use the files of a directory.
	Origin string
	// GitDir is the directory with git's files for this worktree. Common is the directory with the configuration and
	// the objects of the whole repository.
	GitDir, Common string
}

// origin returns a slice with the directory from which the worktree was made. If there is no worktree, the slice is
// empty.
func (j judge) origin() []string {
	if j.place.Worktree == nil {
		return nil
	}
	return []string{j.place.Worktree.Origin}
}

// inWorkOf accepts the working directory of a use with "in: work".
//
// If the session has a worktree, uses that change something are granted only in the directory from which the worktree
// was made. An example is docker compose, which derives the name of a project from the directory. In the worktree it
// would start a second copy of the services.
func (j judge) inWorkOf(use *Use, dir string) error {
	switch {
	case j.place.Worktree == nil:
		return j.inWork(dir)
	case use.Tier <= 1:
		return j.inside(dir, append([]string{"."}, j.origin()...))
	}
	err := j.inside(dir, j.origin())
	if err != nil && !errors.Is(err, errAtRun) {
		return denied("the services run from %s, and not from the worktree: use cd %[1]s", j.place.Worktree.Origin)
	}
	return err
}

// inRepositoryOf accepts the working directory of a use with "in: repository". A use that changes something is refused
// in the directory from which the worktree was made.
func (j judge) inRepositoryOf(use *Use, dir string) error {
	if j.place.Worktree != nil && use.Tier <= 1 && j.inside(dir, j.origin()) == nil {
		return j.configured(dir)
	}
	return j.inRepository(dir)
}

// ownWorktree returns the paths of git's configuration files for the session's worktree. The argument repository is the
// path of a .git. If this .git does not belong to the session's worktree, ownWorktree returns false. If an agent has
// changed the files by which git finds its configuration, ownWorktree fails.
func (j judge) ownWorktree(repository string) (files []string, is bool, err error) {
	tree := j.place.Worktree
	if tree == nil || repository != filepath.Join(tree.Top, ".git") {
		return nil, false, nil
	}
	if err := tree.Check(j.files.ReadFile); err != nil {
		return nil, true, denied("%v: git is not used there", err)
	}
	return []string{
		filepath.Join(tree.Common, "config"), filepath.Join(tree.Common, "config.worktree"), filepath.Join(tree.GitDir, "config.worktree"),
	}, true, nil
}

// Check returns an error if the files by which git finds the repository of the worktree have been changed. The function
// readFile reads a whole file.
func (w *Worktree) Check(readFile func(string) ([]byte, error)) error {
	for _, link := range []struct{ file, content string }{
		{filepath.Join(w.Top, ".git"), "gitdir: " + w.GitDir},
		{filepath.Join(w.GitDir, "commondir"), "../.."},
	} {
		content, err := readFile(link.file)
		if err != nil {
			return err
		}
		if strings.TrimRight(string(content), "\n") != link.content {
			return fmt.Errorf("%s is not as git has written it", link.file)
		}
	}
	return nil
}
