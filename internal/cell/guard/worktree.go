package guard

import (
	"errors"
	"path/filepath"
)

// origin returns a slice with the directory from which the session's worktree was made. If there is no worktree, the
// slice is empty.
func (j judge) origin() []string {
	if j.place.Origin == "" {
		return nil
	}
	return []string{j.place.Origin}
}

// in checks the working directory of a command. The directory must be of the kind that the use requires (see Use.In).
//
// If the session has a worktree, uses with "in: work" that change something are granted only in the directory from
// which the worktree was made. An example is docker compose, which derives the name of a project from the directory. In
// the worktree it would start a second copy of the services. Uses with "in: repository" that change something are
// granted only in the worktree.
func (j judge) in(use *Use, dir string) error {
	if use.In == "repository" && dir != "" && !j.limits().Anything {
		if err := j.notBare(dir); err != nil {
			return err
		}
	}
	switch {
	case use.In == "" || use.In == "project" && dir != "" && j.isProject(dir):
		return nil
	case j.place.Origin != "" && use.Tier <= 1:
		return j.inside(dir, append([]string{"."}, j.origin()...))
	case j.place.Origin == "" || use.In == "repository":
		return j.inside(dir, []string{"."})
	}
	err := j.inside(dir, j.origin())
	if err != nil && !errors.Is(err, errAtRun) {
		return denied("the services run from %s, and not from the worktree: use cd %[1]s", j.place.Origin)
	}
	return err
}

// inside accepts commands whose working directory is one of the named directories, or lies below one of them.
func (j judge) inside(dir string, names []string) error {
	if dir == "" {
		return errAtRun
	}
	resolved, err := j.files.Resolve(dir)
	if err != nil || !isBelow(resolved, j.roots(names)) {
		return denied("it is granted in the working directory only, and %s is outside", dir)
	}
	return nil
}

// notBare refuses a directory in which git before 2.38 could take the settings of a repository that an agent has made,
// and with them start a program: one that looks like a bare repository, or is below one.
func (j judge) notBare(dir string) error {
	resolved, err := j.files.Resolve(dir)
	for ; err == nil; resolved = filepath.Dir(resolved) {
		if j.files.Exists(filepath.Join(resolved, "HEAD")) {
			return denied("%s looks like a repository without a working directory", resolved)
		}
		if resolved == filepath.Dir(resolved) {
			return nil
		}
	}
	return denied("%s cannot be resolved: %v", dir, err)
}
