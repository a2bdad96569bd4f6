package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/change/checkout"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/redact"
)

const (
	// leaveLimit limits the time in which a worktree is examined at the end of a session.
	leaveLimit = time.Minute
	// drainLeaveLimit replaces leaveLimit when the worker stops. The sum of drainLeaveLimit and cell.HurriedSave must
	// fit into ReportTime.
	drainLeaveLimit = ReportTime / 4
)

// workplaces finds the directory for each session that repairs. No other session may repair in this directory at the
// same time.
type workplaces struct {
	keeper *checkout.Keeper
	// scratch is a directory in which several sessions can repair at once.
	scratch string
	// otherUser reports whether agents run as a different user from that of this process.
	otherUser bool
	// reviewed reports that each commit must be reviewed, so that only sessions with a worktree may commit.
	reviewed bool
	mask     *redact.Redactor
	logger   *slog.Logger
}

func newWorkplaces(options Options, host *cell.Host) (workplaces, error) {
	checkouts := checkoutOptions(options, host.GitSandbox())
	checkouts.End = func(session string) error {
		_, err := claude.EndSession(session)
		return err
	}
	keeper, err := checkout.New(checkouts)
	if err == nil {
		for _, problem := range ReviewProblems(options) {
			options.Cell.Logger.Warn("reviewed commits: " + problem)
		}
	}
	return workplaces{
		keeper: keeper, scratch: options.Scratch, otherUser: options.Cell.Driver.User != nil,
		reviewed: options.Reviewed, mask: options.Cell.Mask, logger: options.Cell.Logger,
	}, err
}

// checkoutOptions returns the options for the directories of sessions.
func checkoutOptions(options Options, sandbox *claude.Sandbox) checkout.Options {
	driver := options.Cell.Driver
	return checkout.Options{
		Locks: options.Locks, Worktrees: options.Worktrees, SearchPath: pathIn(driver.Environ), User: driver.User,
		Containment: driver.Containment, Patience: activities.MaxDirectoryWait, Sandbox: sandbox,
	}
}

// ReviewProblems says in which directories of agents sessions may not commit, or commits cannot be pushed, if each
// commit is reviewed.
func ReviewProblems(options Options) []string {
	if !options.Reviewed {
		return nil
	}
	var all []string
	checkouts := checkoutOptions(options, cell.GitSandbox(options.Cell))
	for _, dir := range append([]string{options.WorkDir}, options.Repositories...) {
		if missing := checkout.Missing(context.Background(), checkouts, dir); missing != "" {
			all = append(all, fmt.Sprintf("sessions may not commit in %s, because there can be no worktree: %s", dir,
				missing))
		} else if checkout.NoRemote(context.Background(), checkouts, dir) {
			all = append(all, fmt.Sprintf("what is approved in %s stays on its branch, because the repository has no "+
				"remote origin", dir))
		}
	}
	return all
}

// lookPath returns the path of a program on the agents' PATH; "" if it is not there.
func (r *Runner) lookPath(program string) string {
	path := guard.Host{}.LookPath(program, filepath.SplitList(pathIn(r.Cell.Driver.Environ)))
	if !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// pathIn returns the value of PATH in an environment.
func pathIn(environ []string) (path string) {
	for _, variable := range environ {
		if value, is := strings.CutPrefix(variable, "PATH="); is {
			path = value
		}
	}
	return path
}

// workplace is the directory in which a session works. If Place is nil, the session works in a directory without a
// lock. This holds for a session that does not repair, and for a session in the scratch directory.
type workplace struct {
	*checkout.Place
	// shared is the directory that the run names.
	shared string
	workplaces
}

// enter returns the workplace of a run. While another session uses the workplace, enter waits. The caller must call
// leave afterwards.
func (w workplaces) enter(
	ctx context.Context, run activities.AgentRun, observe func(activities.AgentProgress),
) (workplace, error) {
	if !run.Repairs || run.Directory == w.scratch && run.Authoring == nil {
		return workplace{shared: run.Directory, workplaces: w}, nil
	}
	session := checkout.Session{
		ID: run.SessionID, Name: activities.ChainDirName(run.ChainID + "/" + run.FirstRunID), Directory: run.Directory,
	}
	session.Interrupted = run.Interrupted
	switch of := run.Authoring; {
	case run.At.Commit != "":
		session.From, session.Exact = checkout.Checkpoint(run.At), run.At.Commit == run.Base && !run.Interrupted
	case of != nil:
		session.From, session.Exact = checkout.Checkpoint(of.From), of.Begins && !run.Interrupted
	}
	place, err := w.keeper.Enter(ctx, session, func(what string) { observe(activities.AgentProgress{Waiting: what}) })
	if _, busy := errors.AsType[*checkout.BusyError](err); busy {
		return workplace{}, fmt.Errorf("%w: %w", activities.ErrDirectoryBusy, err)
	}
	if err != nil {
		return workplace{}, err
	}
	entered := workplace{place, run.Directory, w}
	if place.Worktree == nil {
		w.logger.InfoContext(ctx, "a session repairs in the shared directory, which is locked for it", "session_id",
			run.SessionID,
			"directory", run.Directory, "no_worktree", place.Shared)
	}
	return entered, nil
}

// of adapts a run to this workplace. In a worktree it replaces the directory of the run and adds a section to the
// prompt.
func (p workplace) of(run activities.AgentRun) (activities.AgentRun, error) {
	tree := p.tree()
	if tree == nil {
		return run, nil
	}
	section, err := run.InWorktree(p.describe(checkout.Left{}))
	if err != nil {
		return run, err
	}
	run.Directory, run.Prompt = p.Directory, run.Prompt+"\n\n"+section
	return run, nil
}

// tree returns the worktree; nil if there is none.
func (p workplace) tree() *checkout.Worktree {
	if p.Place == nil {
		return nil
	}
	return p.Worktree
}

// policyOf returns the policy for a run. An author proposes nothing itself. If commits are reviewed, a session without
// a worktree commits nothing.
func (p workplace) policyOf(policy *guard.Policy, run activities.AgentRun) *guard.Policy {
	if run.Authoring != nil {
		policy = policy.WithoutProposals()
	}
	if missing := p.missing(run); missing != "" {
		policy = policy.WithoutCommits(missing)
	}
	return policy
}

// missing says why a session has no worktree, if it may not commit because of that; empty otherwise.
func (p workplace) missing(run activities.AgentRun) string {
	switch {
	case p.tree() != nil || !p.reviewed && run.Authoring == nil:
		return ""
	case p.Place != nil:
		return p.Shared
	case run.Repairs:
		return "it works in the directory that all sessions share"
	}
	return "it repairs nothing"
}

// describe returns a description of the worktree and of the changes that are left in it.
func (p workplace) describe(left checkout.Left) escalation.Worktree {
	return escalation.Worktree{
		Path: p.Directory, Branch: p.Worktree.Branch, Origin: p.shared,
		New: p.Worktree.New, Again: p.Worktree.Again, Aside: p.Worktree.Aside,
		Kept: left.Kept, Commits: left.Commits, Changed: left.Changed, Problem: left.Problem,
	}
}

// adjust lets the agent work with git in its worktree.
func (p workplace) adjust(spec *cell.Spec) {
	tree := p.tree()
	if tree == nil {
		return
	}
	spec.Origin = tree.Guarded.Origin
	for _, of := range []string{"GIT_AUTHOR_", "GIT_COMMITTER_"} { // the account may have no full name
		spec.Env[of+"NAME"] = checkout.AuthorName
	}
	spec.Env["EMAIL"] = checkout.AuthorAddress // git uses it if its configuration names no address
	// Inside its sandbox the agent cannot write the repository's configuration. With this setting git does not try to
	// record the upstream of a new branch in this configuration.
	spec.GitSettings = [][2]string{{"branch.autoSetupMerge", "false"}}
	if p.otherUser { // git refuses a repository of another user, but the operator chose this one for agents
		spec.GitSettings = append(spec.GitSettings, [2]string{"safe.directory", tree.Guarded.Top})
	}
	spec.Readable, spec.Writable = append(tree.Readable(), p.shared), tree.Writable()
}

// leave releases the workplace. It returns a description of the worktree and of the changes left there; nil if there
// was no worktree.
func (p workplace) leave(ctx context.Context, limit time.Duration) (left *escalation.Worktree) {
	if p.Place == nil {
		return nil
	}
	if missing := p.missing(activities.AgentRun{Repairs: true}); missing != "" {
		left = &escalation.Worktree{Origin: p.shared, Missing: p.mask.Text(missing)}
	}
	if p.Worktree != nil {
		described := p.describe(p.Tidy(ctx, limit))
		described.Problem = p.mask.Text(described.Problem) // the problem may quote what an agent has written
		left = &described
		p.report(ctx, described)
	}
	if err := p.Release(); err != nil {
		p.logger.ErrorContext(ctx, "the lock on a working directory could not be released", "directory", p.Directory,
			"error", err)
	}
	return left
}

// report logs problems of a worktree that appear in no other record.
func (p workplace) report(ctx context.Context, left escalation.Worktree) {
	if left.Problem != "" {
		p.logger.WarnContext(ctx, "a worktree could not be looked at, and is kept", "directory", left.Path, "error",
			left.Problem)
	}
}
