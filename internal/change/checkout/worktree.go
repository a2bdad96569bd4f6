package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// branchPrefix begins the names of the branches of worktrees.
const branchPrefix = "claudeops/"

// Worktree is a git worktree.
type Worktree struct {
	// Branch is the branch that was made for the worktree. The agent may have checked out another branch.
	Branch string
	// Origin is the session's shared directory.
	Origin string
	// New reports whether the worktree was made for this session.
	New bool
	// Guarded has the paths that the guard and the sandbox need.
	Guarded Paths

	repository repository
	// fork is the commit from which the work in the worktree began; empty if it is unknown, or in another history than
	// the shared directory. It is kept in the file forkFile.
	fork, forkFile string
	// begun is the commit with which the latest session in the worktree began, if another one named it. It is kept in
	// the same file.
	begun string
	// session is the ID of the latest session, and Again reports that the session before was the same one. Aside is the
	// name under which restore has put aside the commits of the worktree; empty if it has not.
	session, Aside string
	Again          bool
}

// Paths are the directories of a worktree. All are absolute, with symbolic links resolved.
type Paths struct {
	// Top is the worktree's top directory.
	Top string
	// Origin is the directory that the worktree replaces.
	Origin string
	// GitDir is the directory with git's files for this worktree. Common is the directory with the configuration and
	// the objects of the whole repository.
	GitDir, Common string
}

// PathOf returns the path in the repository of a file below the shared directory.
func (w *Worktree) PathOf(name string) string {
	return path.Join(filepath.ToSlash(w.repository.below), name)
}

// Shared returns the path that a file of the repository has in the shared directory's working directory, whether or not
// it exists.
func (w *Worktree) Shared(name string) string {
	return filepath.Join(w.repository.top, filepath.FromSlash(name))
}

// Readable lists the directories that git reads for the worktree, in addition to the worktree itself.
func (w *Worktree) Readable() []string { return []string{w.Guarded.Top, w.Guarded.Common} }

// Writable lists the directories that git writes when an agent commits in the worktree. The configuration and the hooks
// of the repository are not among these directories.
func (w *Worktree) Writable() []string {
	return append(commonly(w.Guarded.Common), w.Guarded.Top, w.Guarded.GitDir)
}

// commonly lists the directories of a repository in which git writes commits and branches.
func commonly(dir string) []string {
	var places []string
	for _, name := range []string{"objects", "refs", "logs", "reftable"} {
		places = append(places, filepath.Join(dir, name))
	}
	return places
}

// Left describes the changes that a session has left in its worktree.
type Left struct {
	// Kept reports whether the worktree still exists.
	Kept bool
	// Commits counts the worktree's commits since the work in it began.
	Commits int
	// Changed reports whether the worktree has uncommitted files.
	Changed bool
	// Problem says why the other fields are unknown; empty if they are known.
	Problem string
}

// open makes a worktree, or finds the worktree of an earlier session with the same name. If ctx has ended, the error is
// the cause of the end. Any other error is an *unavailableError.
func (g git) open(ctx context.Context, tree *Worktree) error {
	err := g.tryOpen(ctx, tree)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, is := errors.AsType[*unavailableError](err); err != nil && !is {
		return unavailable("%w", err)
	}
	return err
}

func (g git) tryOpen(ctx context.Context, tree *Worktree) error {
	if err := tree.repository.check(g.options.User); err != nil {
		return err
	}
	there, err := g.exists(tree)
	if err == nil && there && tree.unfinished() {
		err = g.discard(ctx, tree)
		there = err != nil
	}
	if err == nil && !there {
		tree.New = true
		err = g.add(ctx, tree)
	}
	if err == nil {
		err = g.check(tree)
	}
	if err != nil {
		return err
	}
	return tree.readFork()
}

// exists reports whether a file or directory exists at the path of the worktree.
func (g git) exists(tree *Worktree) (there bool, err error) {
	err = process.AsUser(g.options.User, func() error {
		_, err := os.Lstat(tree.Guarded.Top)
		there = err == nil
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return there, err
}

// unfinished reports whether git was killed while it made the worktree. Git keeps a lock file during that time.
func (w *Worktree) unfinished() bool {
	reason, err := readRegular(filepath.Join(w.usualGitDir(), "locked"), maxLink)
	return err == nil && strings.TrimSpace(string(reason)) == "initializing"
}

// usualGitDir returns the directory in which git normally keeps the data of the worktree. If this directory already
// existed when the worktree was made, git uses another directory.
func (w *Worktree) usualGitDir() string {
	return filepath.Join(w.Guarded.Common, "worktrees", filepath.Base(w.Guarded.Top))
}

// add makes the worktree on its branch. If the branch does not exist, add creates the branch at the HEAD of the
// shared directory. The branch can exist without the worktree: somebody has removed the worktree, or another host has
// it.
func (g git) add(ctx context.Context, tree *Worktree) error {
	if err := g.forget(ctx, tree); err != nil {
		return err
	}
	if err := g.prepare(tree); err != nil {
		return err
	}
	from, args := "HEAD", []string{
		"worktree", "add", "--quiet", "--no-track", "-b", tree.Branch, tree.Guarded.Top,
		"HEAD",
	}
	if _, err := g.in(ctx, tree.repository, "rev-parse", "--verify", "--quiet", "refs/heads/"+tree.Branch); err == nil {
		from, args = tree.Branch, []string{"worktree", "add", "--quiet", tree.Guarded.Top, tree.Branch}
	}
	if below := tree.repository.below; below != "." {
		if kind, err := g.in(ctx, tree.repository, "cat-file", "-t", from+":"+filepath.ToSlash(below)); err != nil ||
			kind != "tree" {
			return unavailable("%s is not a directory of the repository %s", tree.Origin, tree.repository.top)
		}
	}
	if err := g.keepFork(ctx, tree, from); err != nil {
		return err
	}
	return g.alone(ctx, tree.administered(), args)
}

// prepare makes the directories that git's sandbox can permit only if they exist.
func (g git) prepare(tree *Worktree) error {
	return process.AsUser(g.options.User, func() error {
		for _, dir := range []string{"worktrees", "logs"} {
			err := os.Mkdir(filepath.Join(tree.Guarded.Common, dir), 0o777) //nolint:gosec // as git does: the umask decides
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		return nil
	})
}

// administered returns the place where git makes and removes worktrees.
func (w *Worktree) administered() where {
	return where{
		repository: w.repository,
		writable: append(commonly(w.Guarded.Common), filepath.Dir(w.Guarded.Top),
			filepath.Join(w.Guarded.Common, "worktrees")),
	}
}

// discard removes the worktree with everything in it.
func (g git) discard(ctx context.Context, tree *Worktree) error {
	return g.alone(ctx, tree.administered(), []string{"worktree", "remove", "--force", "--force", tree.Guarded.Top})
}

// clear removes a worktree with everything in it, or what is left of one.
func (g git) clear(ctx context.Context, tree *Worktree) error {
	there, err := g.exists(tree)
	if err != nil {
		return err
	}
	if there {
		return g.discard(ctx, tree)
	}
	return g.forget(ctx, tree)
}

// forget removes git's record of a former worktree at the same path. Otherwise git would refuse to make the worktree
// again.
func (g git) forget(ctx context.Context, tree *Worktree) error {
	link, err := readRegular(filepath.Join(tree.usualGitDir(), "gitdir"), maxLink)
	if err != nil || strings.TrimSpace(string(link)) != filepath.Join(tree.Guarded.Top, ".git") {
		return nil //nolint:nilerr // there is no record
	}
	return g.discard(ctx, tree)
}

// maxLink limits the size of a file that names one of git's directories, in bytes.
const maxLink = 8 << 10

// check finds git's directory for the worktree. It returns an error if a file of the worktree refers git to another
// directory.
func (g git) check(tree *Worktree) error {
	read := func(file string) ([]byte, error) { return readRegular(file, maxLink) }
	return process.AsUser(g.options.User, func() error {
		own := filepath.Join(tree.Guarded.Top, ".git")
		content, err := read(own)
		if err != nil {
			return err
		}
		dir, is := strings.CutPrefix(strings.TrimSpace(string(content)), "gitdir: ")
		if !is || filepath.Dir(dir) != filepath.Join(tree.Guarded.Common, "worktrees") {
			return fmt.Errorf("%s is not a worktree of %s", tree.Guarded.Top, tree.repository.top)
		}
		tree.Guarded.GitDir = dir
		if err := tree.Guarded.check(read); err != nil {
			return err
		}
		back, err := read(filepath.Join(dir, "gitdir"))
		if err != nil || strings.TrimSpace(string(back)) != own {
			return fmt.Errorf("%s belongs to another worktree", dir)
		}
		return checkConfig(filepath.Join(dir, "config.worktree"))
	})
}

// leave looks for changes that a session has left in its worktree. If there are no changes, leave removes the worktree
// and its branch.
func (g git) leave(ctx context.Context, tree *Worktree) Left {
	left, err := g.look(ctx, tree)
	if err == nil {
		err = g.clear(ctx, tree.committed())
	}
	if err == nil && left.Commits == 0 && !left.Changed {
		err = g.remove(ctx, tree)
		left.Kept = err != nil
	}
	if err != nil {
		left.Problem = err.Error()
	}
	return left
}

// recheck returns an error if a session has made git run programs, or has referred the worktree to another directory.
func (g git) recheck(tree *Worktree) error {
	before := tree.Guarded.GitDir
	if err := tree.repository.check(g.options.User); err != nil {
		return err
	}
	if err := g.check(tree); err != nil {
		return err
	}
	if tree.Guarded.GitDir != before {
		return fmt.Errorf("%s was changed", filepath.Join(tree.Guarded.Top, ".git"))
	}
	return nil
}

// look returns what is in the worktree.
func (g git) look(ctx context.Context, tree *Worktree) (Left, error) {
	left := Left{Kept: true}
	if err := g.recheck(tree); err != nil {
		return left, err
	}
	status, err := g.run(ctx, inTree(tree), listChanges)
	if err != nil {
		return left, err
	}
	left.Changed = changes(status, tree.repository.below)
	if !left.Changed {
		if left.Changed, err = g.hidden(ctx, tree); err != nil {
			return left, err
		}
	}
	// The worktree's branch can be gone, or the agent can work on another branch. So count the commits of HEAD and, if
	// it exists, of the worktree's branch.
	tips := []string{"HEAD"}
	if _, err := g.at(ctx, tree, "rev-parse", "--verify", "--quiet", "refs/heads/"+tree.Branch); err == nil {
		tips = append(tips, "refs/heads/"+tree.Branch)
	}
	// Count from where the work began: an agent could move the branch of the shared directory.
	args := slices.Concat([]string{"rev-list", "--count"}, tips,
		[]string{"--not", cmp.Or(tree.fork, "main-worktree/HEAD"), "--"})
	count, err := g.at(ctx, tree, args...)
	if err != nil {
		return left, err
	}
	left.Commits, err = strconv.Atoi(count)
	return left, err
}

// listChanges are the arguments of git that list all changes in a worktree.
var listChanges = []string{"status", "--porcelain", "--no-renames", "--ignored", "--ignore-submodules=dirty", "-z"}

// hidden reports whether the worktree has changes that the agent's index hides: its entries can say that git need not
// look at a file.
func (g git) hidden(ctx context.Context, tree *Worktree) (changed bool, err error) {
	at := inTree(tree)
	at.index, at.writable = filepath.Join(tree.Guarded.GitDir, "claudeops.index"), []string{tree.Guarded.GitDir}
	tidy := func() error {
		return process.AsUser(g.options.User, func() error {
			return errors.Join(removeFile(at.index), removeFile(at.index+".lock"))
		})
	}
	if err := tidy(); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, tidy()) }()
	if _, err := g.run(ctx, at, []string{"read-tree", "HEAD"}); err != nil {
		return false, err
	}
	status, err := g.run(ctx, at, listChanges)
	return changes(status, tree.repository.below), err
}

// removeFile removes a file, if there is one.
func removeFile(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// workspaces is the directory in which the supervisor exchanges files with agents. Its content does not count as a
// change.
const workspaces = ".claudeops"

// changes reports whether the output of git status names a file. Ignored files count, because the new worktree did not
// contain any ignored files.
func changes(status, below string) bool {
	own := "!! " + filepath.ToSlash(filepath.Join(below, workspaces)) + "/"
	for entry := range strings.SplitSeq(status, "\x00") {
		if entry != "" && entry != own {
			return true
		}
	}
	return false
}

// remove removes the worktree. It removes the branch only if the shared directory has all commits of the branch. Git
// itself refuses to remove a worktree with new changes, and a branch that is in use.
func (g git) remove(ctx context.Context, tree *Worktree) error {
	if err := g.alone(ctx, tree.administered(), []string{"worktree", "remove", tree.Guarded.Top}); err != nil {
		return err
	}
	// To remove a branch, git writes the list of packed branches, which is in the repository's directory itself. A
	// branch that is left is only a name.
	in := where{repository: tree.repository, writable: []string{tree.Guarded.Common}}
	_ = g.alone(ctx, in, []string{"branch", "--quiet", "-d", tree.Branch})
	return tree.forgetFork()
}

// check returns an error if the files by which git finds the repository of the worktree have been changed. The function
// readFile reads a whole file.
func (w *Paths) check(readFile func(string) ([]byte, error)) error {
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
