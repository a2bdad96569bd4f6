package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// Options configure a Keeper.
type Options struct {
	// Worktrees is an existing directory that belongs to the agents' user. The Keeper makes the worktrees in it. If
	// Worktrees is empty, all sessions work in their shared directory.
	Worktrees string
	// Locks is the directory of the lock files. New creates it. Agents must not be able to write in this directory.
	Locks string
	// SearchPath is the value of PATH. The Keeper searches its directories for git.
	SearchPath string
	// User runs git and owns the worktrees; nil means the user of this process. A repository may belong to another
	// user.
	User *process.User
	// Containment is the containment of git's processes. If it is empty, process.ModeAuto applies.
	Containment process.Mode
	// Sandbox restricts git, which gets what it reads and writes in addition; nil means no sandbox.
	Sandbox *process.Sandbox
	// End ends the processes of a session that never released its place; nil for nothing.
	End func(session string) error
	// Patience is the maximum time to wait for a worktree or directory that another session uses.
	Patience time.Duration
}

// Keeper gives sessions their places.
type Keeper struct {
	options Options
	git     git
}

// New returns a Keeper.
func New(options Options) (*Keeper, error) {
	if err := os.MkdirAll(options.Locks, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory for the locks of working directories: %w", err)
	}
	return &Keeper{options: options, git: newGit(options)}, nil
}

// Missing says why a directory can have no worktrees; empty if it can.
func Missing(ctx context.Context, options Options, directory string) string {
	g := newGit(options)
	_, in := findRepository(directory)
	err := in.problem
	switch {
	case options.Worktrees == "":
		err = unavailable("worktrees are off")
	case err != nil:
	case g.path == "":
		err = unavailable("there is no git on the PATH")
	default:
		if err = in.repository.check(options.User); err != nil {
			break
		}
		if _, err = g.in(ctx, in.repository, "rev-parse", "--verify", "HEAD^{commit}"); err != nil {
			break
		}
		name := strings.TrimSuffix(branchPrefix, "/")
		if _, none := g.in(ctx, in.repository, "rev-parse", "--verify", "--quiet", "refs/heads/"+name); none == nil {
			err = unavailable("%s has a branch %s, so git can make no branch below that name", in.repository.top, name)
		}
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// NoRemote reports whether a directory is in a repository from which nothing can be pushed, because it has no remote
// origin.
func NoRemote(ctx context.Context, options Options, directory string) bool {
	_, in := findRepository(directory)
	if in.problem != nil {
		return false
	}
	g := newGit(options)
	remote, err := g.pushAddress(ctx, in.repository)
	return g.path != "" && err == nil && remote == ""
}

// Session is a session that repairs.
type Session struct {
	// ID is the session's own id.
	ID string
	// Name is the name of the worktree, and of its branch below "claudeops/". It must be a plain file name. Sessions
	// with the same name get the same worktree, one after the other.
	Name string
	// Directory is the shared directory. Without a worktree the session works in the shared directory.
	Directory string
	// From is the commit with which the worktree begins, at least; zero for what is committed in Directory. A session
	// with such a commit never works in the shared directory.
	From Checkpoint
	// Exact means that the worktree begins with From itself, and not with a commit after it. Interrupted means that the
	// session goes on with what was interrupted: if this host has its worktree, commits that replaced From stay.
	Exact, Interrupted bool
}

// Place is a directory that a session has for itself.
type Place struct {
	// Directory is the directory in which the session works. It is Session.Directory, or a directory in the worktree.
	Directory string
	// Worktree is the session's worktree; nil if the session works in Session.Directory.
	Worktree *Worktree
	// Shared is the reason why there is no worktree.
	Shared string

	git  git
	lock *lock
}

// BusyError says that another session still used the place after Options.Patience.
type BusyError struct{ Directory, Holder string }

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("%s repairs in %s, and has not finished yet", holderName(e.Holder), e.Directory)
}

// holderName describes the session that holds a lock.
func holderName(id string) string {
	if id == "" {
		return "another session"
	}
	return "session " + id
}

// unavailableError says why a session gets no worktree.
type unavailableError struct{ reason string }

func (e *unavailableError) Error() string { return e.reason }

// unavailable returns an *unavailableError. It takes the same arguments as fmt.Errorf.
func unavailable(format string, args ...any) error {
	return &unavailableError{fmt.Errorf(format, args...).Error()}
}

// Enter returns the place of a session. If another session uses the place, Enter calls the function waiting with a
// description of that session. Then Enter waits for the place. The caller must release the place.
//
// If the place is still in use after Options.Patience, the error is a *BusyError. If ctx ends, the error is the cause
// of the end.
func (k *Keeper) Enter(ctx context.Context, session Session, waiting func(what string)) (*Place, error) {
	top, found := findRepository(session.Directory)
	place, err := k.enterWorktree(ctx, session, found, waiting)
	why, is := errors.AsType[*unavailableError](err)
	if !is || session.From.Commit != "" {
		return place, err
	}
	held, err := k.lock(ctx, top, session.ID, waiting)
	if err != nil {
		return nil, err
	}
	return &Place{Directory: session.Directory, Shared: why.Error(), lock: held}, nil
}

// enterWorktree returns a place in a worktree. If the session must work in its shared directory, the error is an
// *unavailableError.
func (k *Keeper) enterWorktree(
	ctx context.Context, session Session, in found, waiting func(string),
) (place *Place, err error) {
	switch {
	case k.options.Worktrees == "":
		return nil, unavailable("worktrees are off")
	case in.problem != nil:
		return nil, in.problem
	case k.git.path == "":
		return nil, unavailable("there is no git on the PATH")
	}
	parent, err := filepath.EvalSymlinks(k.options.Worktrees)
	if err != nil {
		return nil, unavailable("%w", err)
	}
	tree := &Worktree{
		Branch: branchPrefix + session.Name, Origin: session.Directory, repository: in.repository,
		Guarded: Paths{Top: filepath.Join(parent, session.Name), Origin: session.Directory, Common: in.repository.dir},
	}
	held, err := k.lock(ctx, tree.Guarded.Top, session.ID, waiting)
	if err != nil {
		return nil, err
	}
	tree.forkFile = held.file + ".fork"
	if err = k.git.open(ctx, tree); err == nil {
		err = k.git.unlock(tree)
	}
	if err == nil {
		err = k.git.restore(ctx, tree, session)
	}
	if err != nil {
		return nil, errors.Join(err, held.release())
	}
	return &Place{
		Directory: filepath.Join(tree.Guarded.Top, in.repository.below), Worktree: tree, git: k.git, lock: held,
	}, nil
}

// Tidy returns the changes that the session has left in its worktree. If there are no changes, Tidy removes the
// worktree. Tidy stops after the time limit, and not when ctx ends. Without a worktree, Tidy does nothing.
func (p *Place) Tidy(ctx context.Context, limit time.Duration) Left {
	if p.Worktree == nil {
		return Left{}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return p.git.leave(ctx, p.Worktree)
}

// Release gives the place up.
func (p *Place) Release() error { return p.lock.release() }
