package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// Checkpoint is a commit of a worktree, with what a host needs to have it that did not make it.
type Checkpoint struct {
	// Commit is the commit, and Base a commit before it that every host has. Commit is empty if there is no checkpoint.
	Commit, Base string
	// Pack contains the commits between the two in git's format; empty if they are only on the host that made them.
	Pack []byte
}

const (
	// maxPack limits the commits that travel to other hosts, in bytes. A workflow's history contains them several
	// times.
	maxPack = 128 << 10
	// maxLog limits the log of these commits, in bytes.
	maxLog = 1 << 20
)

// pack fills in the log of a change, and the commits since Fork for other hosts. If one of them is too large, pack
// leaves both empty.
func (g git) pack(ctx context.Context, tree *Worktree, change *Change) error {
	if change.Commit == change.Fork {
		return nil
	}
	log, cut, err := g.atMost(ctx, tree, maxLog, append(plainDiff("log"), "--patch", "--text", "-m",
		change.Fork+".."+change.Commit)...)
	if err != nil || cut {
		return err
	}
	packed := limited{most: maxPack + 1}
	err = g.write(ctx, inTree(tree), []string{"pack-objects", "--revs", "--thin", "--stdout", "--quiet"},
		strings.NewReader(change.Commit+"\n^"+change.Fork+"\n"), &packed)
	if err == nil && len(packed.kept) <= maxPack {
		change.Log, change.Pack = log, packed.kept
	}
	return err
}

// restore makes the worktree contain the commit from which a session begins. If the worktree is at this commit, or may
// keep its own, restore changes nothing.
func (g git) restore(ctx context.Context, tree *Worktree, session Session) error {
	from := session.From
	if from.Commit == "" {
		return tree.keepSession(session)
	}
	if err := g.obtain(ctx, inTree(tree), from); err != nil {
		return err
	}
	head, err := g.at(ctx, tree, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return err
	}
	if head != from.Commit && !g.mayKeep(ctx, tree, session, head) {
		if err := g.replace(ctx, tree, from, head); err != nil {
			return err
		}
	}
	return tree.keepSession(session)
}

// mayKeep reports whether a worktree keeps its commit although a session begins from another one: if it was made on
// that one, or if an interrupted session that began with that one has replaced it. Otherwise it is older: another host
// has made the one that follows.
func (g git) mayKeep(ctx context.Context, tree *Worktree, session Session, head string) bool {
	from := session.From.Commit
	after := g.contains(ctx, tree, head, from)
	replaced := !after && tree.begun == from && !g.contains(ctx, tree, from, head)
	return after && !session.Exact || replaced && session.Interrupted
}

// replace makes the worktree contain a commit. What that does not have, committed or not, stays under a name of its
// own.
func (g git) replace(ctx context.Context, tree *Worktree, from Checkpoint, head string) error {
	in := inTree(tree)
	in.writable = tree.Writable()
	left, err := g.collect(ctx, in, head)
	if err != nil {
		return err
	}
	if !g.contains(ctx, tree, from.Commit, left) {
		name := "refs/claudeops/left/" + filepath.Base(tree.Guarded.Top) + "/" + left
		if _, err := g.run(ctx, in, []string{"update-ref", name, left}); err != nil {
			return err
		}
		tree.Aside = name
	}
	return g.alone(ctx, in, []string{"checkout", "--quiet", "--force", "--no-track", "-B", tree.Branch, from.Commit})
}

// unlock removes the locks of a git that was killed: those of the worktree's own files and of its branch. No process of
// an earlier session works in the worktree any more. Locks that all worktrees of the repository share stay, because
// another session may hold them.
func (g git) unlock(tree *Worktree) error {
	return process.AsUser(g.options.User, func() error {
		common, err := os.OpenRoot(tree.Guarded.Common) // an agent can make links there
		if err != nil {
			return err
		}
		defer func() { _ = common.Close() }()
		own, err := filepath.Rel(tree.Guarded.Common, tree.Guarded.GitDir)
		if err != nil {
			return err
		}
		locks := []string{filepath.Join("refs", "heads", filepath.FromSlash(tree.Branch)+".lock")}
		err = fs.WalkDir(common.FS(), filepath.ToSlash(own), func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "modules": // the repositories of submodules
				return fs.SkipDir
			case strings.HasSuffix(name, ".lock"):
				locks = append(locks, filepath.FromSlash(name))
			}
			return nil
		})
		for _, name := range locks {
			if gone := common.Remove(name); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
		return err
	})
}

// collect returns a commit of everything in a worktree that git can read and does not ignore: head, or a commit after
// it. It gives the worktree a new index, because files can be hidden in the agent's.
func (g git) collect(ctx context.Context, in where, head string) (string, error) {
	if _, err := g.run(ctx, in, []string{"read-tree", head}); err != nil {
		return "", err
	}
	_, err := g.run(ctx, in, []string{"add", "--all", "--ignore-errors"})
	if _, unreadable := errors.AsType[*failedError](err); err != nil && !unreadable {
		return "", err
	}
	files, err := g.run(ctx, in, []string{"write-tree"})
	if err != nil {
		return "", err
	}
	if committed, err := g.run(ctx, in, []string{"rev-parse", head + "^{tree}"}); err != nil || committed == files {
		return head, err
	}
	return g.run(ctx, in, []string{"commit-tree", "-p", head, "-m", "not committed by its session", files})
}

// obtain adds the commits of a checkpoint to a repository that lacks them.
func (g git) obtain(ctx context.Context, at where, from Checkpoint) error {
	if g.has(ctx, at, from.Commit) {
		return nil
	}
	if err := g.unpack(ctx, at, from); err != nil {
		return fmt.Errorf("this host does not have the commit %s: %w", from.Commit, err)
	}
	return nil
}

// unpack adds the commits of a checkpoint to the repository.
func (g git) unpack(ctx context.Context, at where, from Checkpoint) error {
	switch {
	case len(from.Pack) == 0:
		return errors.New("it was not carried along, because it is too large or contains a secret")
	case !g.has(ctx, at, from.Base):
		return fmt.Errorf("its repository lacks the commit %s, on which that one is based", from.Base)
	}
	var output limited
	at.writable = []string{filepath.Join(at.repository.dir, "objects")}
	err := g.write(ctx, at, []string{"index-pack", "--stdin", "--fix-thin", "--strict"}, bytes.NewReader(from.Pack),
		&output)
	if err != nil {
		return err
	}
	_, err = g.run(ctx, at, []string{"rev-list", "--objects", "--quiet", from.Commit, "^" + from.Base})
	return err
}

// has reports whether the repository has a commit.
func (g git) has(ctx context.Context, at where, commit string) bool {
	_, err := g.run(ctx, at, []string{"rev-parse", "--verify", "--quiet", commit + "^{commit}"})
	return err == nil
}

// contains reports whether a commit is, or comes after, an earlier one.
func (g git) contains(ctx context.Context, tree *Worktree, commit, earlier string) bool {
	_, err := g.at(ctx, tree, "merge-base", "--is-ancestor", earlier, commit)
	return err == nil
}

// Document is a file of the latest commit in a directory.
type Document struct {
	// Commit is the commit, and Path the path of the file in its repository.
	Commit, Path string
	Text         string
	// Patch shows the whole file as added, in git's format.
	Patch string
	// Remote is the address to which the repository pushes; empty if it has no remote origin.
	Remote string
}

// Document returns a file below a directory as the latest commit has it, with a limit in bytes. If the directory cannot
// have worktrees, or the file is missing, Document returns an error.
func (k *Keeper) Document(ctx context.Context, directory, name string, most int) (Document, error) {
	_, found := findRepository(directory)
	switch {
	case found.problem != nil:
		return Document{}, found.problem
	case k.options.Worktrees == "":
		return Document{}, errors.New("worktrees are off, and an author needs one")
	case k.git.path == "":
		return Document{}, errors.New("there is no git on the PATH")
	}
	in := found.repository
	if err := in.check(k.options.User); err != nil {
		return Document{}, err
	}
	document := Document{Path: path.Join(filepath.ToSlash(in.below), name)}
	var err error
	if document.Commit, err = k.git.in(ctx, in, "rev-parse", "--verify", "HEAD^{commit}"); err != nil {
		return Document{}, err
	}
	if err := k.git.verify(ctx, where{repository: in}, document.Commit); err != nil {
		return Document{}, err
	}
	if document.Text, err = k.git.file(ctx, where{repository: in}, document.Commit, document.Path, most); err != nil {
		return Document{}, err
	}
	if document.Text == "" {
		return Document{}, fmt.Errorf("%s is not in the latest commit of %s, or it is empty", name, directory)
	}
	empty, err := k.git.in(ctx, in, "hash-object", "-t", "tree", "--stdin")
	if err != nil {
		return Document{}, err
	}
	shown := append(plainDiff("diff"), "--patch", empty, document.Commit, "--", ":(top,literal)"+document.Path)
	if document.Patch, err = k.git.in(ctx, in, shown...); err == nil {
		document.Remote, err = k.git.pushAddress(ctx, in)
	}
	return document, err
}
