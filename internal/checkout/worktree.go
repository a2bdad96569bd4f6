package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/guard"
	"github.com/claudeops/claudeops/internal/process"
)

// branchPrefix begins the names of the branches of worktrees.
const branchPrefix = "claudeops/"

// Worktree is a git worktree.
type Worktree struct {
	// Branch is the branch that was made for the worktree. An agent may have left it for another one.
	Branch string
	// Origin is the session's shared directory.
	Origin string
	// New reports whether the worktree was made for this session.
	New bool
	// Guarded has the paths that the guard and the sandbox need.
	Guarded guard.Worktree

	repository repository
}

// Readable lists the directories that git reads for the worktree, in addition to the worktree itself.
func (w *Worktree) Readable() []string { return []string{w.Guarded.Top, w.Guarded.Common} }

// Writable lists the directories that git writes when an agent commits in the worktree. The configuration and the hooks
// of the repository are not among them.
func (w *Worktree) Writable() []string {
	common := w.Guarded.Common
	return []string{
		w.Guarded.Top, w.Guarded.GitDir, filepath.Join(common, "objects"), filepath.Join(common, "refs"), filepath.Join(common, "logs"),
		filepath.Join(common, "reftable"),
	}
}

// Left is what a session has left in its worktree.
type Left struct {
	// Kept reports whether the worktree is still there.
	Kept bool
	// Commits counts the commits that the shared directory does not have.
	Commits int
	// Changed reports whether there are files that are not committed.
	Changed bool
	// Problem says why the rest is unknown; empty if it is known.
	Problem string
}

// open makes a worktree, or finds the one that an earlier session with the same name has left. The error is an
// *unavailableError unless ctx has ended.
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
		if _, err = g.in(ctx, tree.repository, "worktree", "remove", "--force", "--force", tree.Guarded.Top); err == nil {
			there = false
		}
	}
	if err == nil && !there {
		tree.New = true
		err = g.add(ctx, tree)
	}
	if err != nil {
		return err
	}
	return g.check(tree)
}

// exists reports whether something is at the path of the worktree.
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

// unfinished reports whether git was killed while it made the worktree. Git locks a worktree for that time.
func (w *Worktree) unfinished() bool {
	reason, err := readRegular(filepath.Join(w.usualGitDir(), "locked"), maxLink)
	return err == nil && strings.TrimSpace(string(reason)) == "initializing"
}

// usualGitDir returns the directory that git makes for the worktree, unless another one has that name.
func (w *Worktree) usualGitDir() string {
	return filepath.Join(w.Guarded.Common, "worktrees", filepath.Base(w.Guarded.Top))
}

// add makes the worktree: on its branch, or if there is none yet, on a new one that begins at the HEAD of the shared
// directory. The branch may be there without the worktree: because somebody has removed the worktree, or because another
// host has it.
func (g git) add(ctx context.Context, tree *Worktree) error {
	if err := g.forget(ctx, tree); err != nil {
		return err
	}
	from, args := "HEAD", []string{"worktree", "add", "--quiet", "--no-track", "-b", tree.Branch, tree.Guarded.Top, "HEAD"}
	if _, err := g.in(ctx, tree.repository, "rev-parse", "--verify", "--quiet", "refs/heads/"+tree.Branch); err == nil {
		from, args = tree.Branch, []string{"worktree", "add", "--quiet", tree.Guarded.Top, tree.Branch}
	}
	if below := tree.repository.below; below != "." {
		if kind, err := g.in(ctx, tree.repository, "cat-file", "-t", from+":"+filepath.ToSlash(below)); err != nil || kind != "tree" {
			return unavailable("%s is not a directory of the repository %s", tree.Origin, tree.repository.top)
		}
	}
	_, err := g.in(ctx, tree.repository, args...)
	return err
}

// forget removes what git knows of a worktree at the same path that is gone. Otherwise git would refuse to make it
// again.
func (g git) forget(ctx context.Context, tree *Worktree) error {
	link, err := readRegular(filepath.Join(tree.usualGitDir(), "gitdir"), maxLink)
	if err != nil || strings.TrimSpace(string(link)) != filepath.Join(tree.Guarded.Top, ".git") {
		return nil //nolint:nilerr // there is none
	}
	_, err = g.in(ctx, tree.repository, "worktree", "remove", "--force", "--force", tree.Guarded.Top)
	return err
}

// maxLink limits the size of the files by which git finds its directories, in bytes.
const maxLink = 8 << 10

// check finds git's directory for the worktree, and checks that no file of the worktree leads git elsewhere.
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
		if err := tree.Guarded.Check(read); err != nil {
			return err
		}
		back, err := read(filepath.Join(dir, "gitdir"))
		if err != nil || strings.TrimSpace(string(back)) != own {
			return fmt.Errorf("%s belongs to another worktree", dir)
		}
		return checkConfig(filepath.Join(dir, "config.worktree"))
	})
}

// leave looks at what a session has left in its worktree. If that is nothing, it removes the worktree and its branch.
func (g git) leave(ctx context.Context, tree *Worktree) Left {
	left, err := g.look(ctx, tree)
	if err == nil && left.Commits == 0 && !left.Changed {
		err = g.remove(ctx, tree)
		left.Kept = err != nil
	}
	if err != nil {
		left.Problem = err.Error()
	}
	return left
}

// look returns what is in the worktree.
func (g git) look(ctx context.Context, tree *Worktree) (Left, error) {
	left := Left{Kept: true}
	before := tree.Guarded.GitDir
	if err := tree.repository.check(g.options.User); err != nil {
		return left, err
	}
	if err := g.check(tree); err != nil {
		return left, err
	}
	if tree.Guarded.GitDir != before {
		return left, fmt.Errorf("%s was changed", filepath.Join(tree.Guarded.Top, ".git"))
	}
	status, err := g.at(ctx, tree, "status", "--porcelain", "--no-renames", "--ignored", "-z")
	if err != nil {
		return left, err
	}
	left.Changed = changes(status, tree.repository.below)
	// The branch may be gone, or the agent may work on another one: both count.
	tips := []string{"HEAD"}
	if _, err := g.at(ctx, tree, "rev-parse", "--verify", "--quiet", "refs/heads/"+tree.Branch); err == nil {
		tips = append(tips, "refs/heads/"+tree.Branch)
	}
	count, err := g.at(ctx, tree, append(append([]string{"rev-list", "--count"}, tips...), "--not", "main-worktree/HEAD", "--")...)
	if err != nil {
		return left, err
	}
	left.Commits, err = strconv.Atoi(count)
	return left, err
}

// workspaces is the directory in which the supervisor exchanges files with agents. What is in it is no work of theirs.
const workspaces = ".claudeops"

// changes reports whether the output of git status names a file. Ignored files count, because they were not there when
// the worktree was made.
func changes(status, below string) bool {
	own := "!! " + filepath.ToSlash(filepath.Join(below, workspaces)) + "/"
	for entry := range strings.SplitSeq(status, "\x00") {
		if entry != "" && entry != own {
			return true
		}
	}
	return false
}

// remove removes the worktree, and its branch if the shared directory has all of its commits. Git itself refuses to
// remove a worktree in which files were changed in the meantime, and a branch that is in use.
func (g git) remove(ctx context.Context, tree *Worktree) error {
	if _, err := g.in(ctx, tree.repository, "worktree", "remove", tree.Guarded.Top); err != nil {
		return err
	}
	_, _ = g.in(ctx, tree.repository, "branch", "--quiet", "-d", tree.Branch) // a branch that is left is only a name
	return nil
}
