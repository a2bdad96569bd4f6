package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/redact"
)

// ReportTime limits the time that an interrupted session has after the grace period of its agent. In this time the
// session archives its conversation and reports its end to Temporal.
const ReportTime = 10 * time.Second

// Runner runs sessions with the claude CLI.
type Runner struct {
	cli           *claude.CLI
	keys          keys
	reserve       *reserve
	settings      config.Claude
	conversations conversations
	privates      privates
	workplaces    workplaces
	sandboxes     sandboxes
	guards        *guards
	modes         modes
	mask          *redact.Redactor
	environ       []string
	checkLimit    time.Duration
	logger        *slog.Logger
	// guessed holds the models without a known price that were logged.
	guessed *sync.Map
	// draining is a context that the function interrupt cancels. When draining ends, every running agent is stopped,
	// and so is every agent that is started afterwards.
	draining  context.Context
	interrupt context.CancelFunc
}

var _ activities.Agent = (*Runner)(nil)

// New returns a Runner. The caller must close it.
func New(ctx context.Context, options Options) (*Runner, error) {
	keys, err := openKeys(ctx, options.CLI, ClaudeOptions(options.Config.Claude, options.Environ), options.Logger)
	if err != nil {
		return nil, errors.Join(err, keys.close())
	}
	guards, err := newGuards(options)
	if err != nil {
		return nil, errors.Join(err, keys.close())
	}
	boxes := newSandboxes(options.Config, options.Policy, options.Environ, guards.sockets.path)
	workplaces, err := newWorkplaces(options, boxes)
	if err != nil {
		return nil, errors.Join(err, guards.close(), keys.close())
	}
	privates, privateErr := newPrivates(options)
	conversations, err := newConversations(options)
	if err := errors.Join(privateErr, err); err != nil {
		return nil, errors.Join(err, guards.close(), keys.close())
	}
	draining, interrupt := context.WithCancel(context.WithoutCancel(ctx))
	runner := &Runner{
		cli:           options.CLI,
		keys:          keys,
		settings:      options.Config.Claude,
		conversations: conversations,
		privates:      privates,
		workplaces:    workplaces,
		sandboxes:     boxes,
		guards:        guards,
		modes:         newModes(options.Config, options.Logger),
		mask:          options.Mask,
		environ:       options.Environ,
		checkLimit:    cmp.Or(options.CheckLimit, checkLimit),
		logger:        options.Logger,
		draining:      draining,
		interrupt:     interrupt,
		guessed:       new(sync.Map),
	}
	runner.reclaimAll(ctx)
	runner.reserve = openReserve(options.Config.State.Dir, options.Logger)
	return runner, nil
}

// Close interrupts the running agents and revokes the agents' keys. After that the guard answers no more calls.
func (r *Runner) Close() error {
	r.interrupt()
	r.reserve.close()
	return errors.Join(r.guards.close(), r.keys.close())
}

// Run implements activities.Agent.
func (r *Runner) Run(
	ctx context.Context, order activities.AgentRun, observe func(activities.AgentProgress),
) (activities.AgentReport, error) {
	ctx, stop := r.untilDrained(ctx)
	defer stop()
	if !order.First { // processes may have outlived their worker
		if _, err := claude.EndSession(order.SessionID); err != nil {
			return notStarted(err)
		}
	}
	if err := r.reclaim(ctx, order.SessionID); err != nil {
		return notStarted(err)
	}
	run, err := r.inDirectory(order)
	if err != nil {
		return notStarted(err)
	}
	place, err := r.workplaces.enter(ctx, run, observe)
	if err != nil && ctx.Err() != nil {
		return r.stopped(ctx, err)
	}
	if err != nil {
		return notStarted(err)
	}
	report, err := r.runAt(ctx, place, run, observe)
	if err == nil && report.Status != escalation.SessionStopped {
		report, err = r.inspected(ctx, place, run, report, observe)
	}
	report.Worktree = place.leave(ctx, r.leaveLimit())
	return report, err
}

// runAt runs a session at its workplace.
func (r *Runner) runAt(
	ctx context.Context, place workplace, run activities.AgentRun, observe func(activities.AgentProgress),
) (activities.AgentReport, error) {
	found, err := r.findConversation(ctx, run)
	if _, altered := errors.AsType[*alteredError](err); altered {
		report, _ := notStarted(err)
		report.Status, report.Ending = escalation.SessionResumeFailed, escalation.EndingUnusable
		return report, nil
	}
	if err != nil {
		return notStarted(err)
	}
	report, err := r.start(ctx, place, run, observe)
	if err == nil {
		return report, nil
	}
	report.Error = err.Error()
	if errors.Is(context.Cause(ctx), activities.ErrDraining) {
		report.Status = escalation.SessionStopped
		return report, activities.ErrDraining
	}
	failure, ok := errors.AsType[*claude.Error](err)
	if !ok || failure.Kind == claude.KindNotStarted {
		report.Status = escalation.SessionFailed
		return report, err
	}
	report.Report = judged(report.Report, failure, run)
	if report.Status == escalation.SessionResumeFailed && !found {
		report.Status = escalation.SessionTranscriptLost
		report.Error += "; it is neither on this host nor in the archive"
	}
	return report, nil
}

// HasConversation implements activities.Agent. If a conversation is in the archive, but not on this host,
// HasConversation copies it to this host.
func (r *Runner) HasConversation(ctx context.Context, directory, sessionID string) (bool, error) {
	run, err := r.inDirectory(activities.AgentRun{Directory: directory, Resume: sessionID})
	if err != nil {
		return false, err
	}
	if err := r.reclaim(ctx, sessionID); err != nil {
		return false, err
	}
	if _, err := r.findConversation(ctx, run); err != nil && ctx.Err() == nil {
		if _, altered := errors.AsType[*alteredError](err); altered {
			return false, nil
		}
		return false, err
	}
	return claude.HoldsMessage(r.conversations.path(sessionID))
}

// Concluded implements activities.Agent.
func (r *Runner) Concluded(ctx context.Context, sessionID, parentID string) (*activities.AgentReport, error) {
	if _, err := claude.EndSession(sessionID); err != nil {
		return nil, err
	}
	if err := r.reclaim(ctx, sessionID); err != nil {
		return nil, err
	}
	parent := ""
	if parentID != "" {
		parent = r.conversations.path(parentID)
	}
	found, err := claude.ReadConclusion(r.conversations.path(sessionID), parent)
	if errors.Is(err, fs.ErrNotExist) { // for example, this host lacks the parent
		return nil, nil
	}
	if err != nil || found == nil {
		return nil, err
	}
	return &activities.AgentReport{
		Unarchived: !r.conversations.archiveLeft(ctx, sessionID),
		Report: escalation.Report{
			Status: escalation.SessionCompleted, Turns: found.Turns, Tokens: escalation.TokenUsage(found.Tokens),
			Cost:          escalation.Cost{CostUSD: found.CostUSD, CostEstimated: true},
			ContextTokens: found.ContextTokens, ReportedSessionID: sessionID,
		},
		Output: r.mask.JSON(found.Output), Calls: found.Calls,
	}, nil
}

// start runs the CLI for a session whose conversation was found, and cleans up afterwards. If the CLI made calls without
// asking the guard, the session's status is failed.
func (r *Runner) start(
	ctx context.Context, place workplace, run activities.AgentRun, observe func(activities.AgentProgress),
) (activities.AgentReport, error) {
	run, own, err := r.prepare(ctx, place, run)
	if err != nil {
		return notStarted(err)
	}
	workspace := r.openWorkspace(ctx, run)
	key := r.keys.open(run)
	invocation := r.invocation(run, workspace)
	invocation.API = key.endpoint()
	without := r.confine(&invocation, run, workspace, own)
	place.adjust(&invocation)
	watch, err := r.guards.open(ctx, run, &invocation, workspace.asked(run), place)
	var result claude.Result
	limited, stopWatching := r.watchUsage(ctx, own, workspace)
	if err == nil && run.LatePrompt != nil {
		invocation.Prompt, err = run.LatePrompt()
	}
	if err == nil {
		mended := r.modes.watch(ctx, run.SessionID)
		result, err = r.cli.Run(limited, invocation, func(p claude.Progress) { observe(progressOf(p, key.count())) })
		mended()
	}
	count := key.end() // first, so that processes left behind by the agent can no longer call the model
	stopWatching()
	unguarded := watch.close(ctx, result.Made, endedByItself(err))
	archived := own.endSaving()
	r.free(ctx, own)
	report := r.report(ctx, run, result, count)
	report.Unarchived = !archived
	report.Sandbox = r.describeSandbox(result, without)
	report.Handoff = r.closeWorkspace(ctx, workspace, run)
	excess, exceeded := errors.AsType[*quotaError](context.Cause(limited))
	switch {
	case exceeded:
		report.Status, report.Error, report.Ending = escalation.SessionFailed, excess.Error(), escalation.EndingOurLimit
		err = nil // another attempt would fill the disk in the same way
	case unguarded != nil:
		report.Status, report.Error, report.Ending = escalation.SessionFailed, unguarded.Error(), escalation.EndingGuard
		err = nil // another attempt would end in the same way
	case err == nil:
		report.Status = escalation.SessionCompleted
	}
	return report, explained(err, count)
}

// inDirectory returns run with its working directory filled in. A chain can name the directory, but this host's
// configuration decides whether agents are permitted to work there. A refusal is an error, because another worker may
// permit the directory.
func (r *Runner) inDirectory(run activities.AgentRun) (activities.AgentRun, error) {
	if run.Directory == "" {
		run.Directory = r.settings.WorkDir
	} else if !slices.Contains(r.settings.Repositories, run.Directory) {
		return run, fmt.Errorf("%s is not in %sREPOSITORIES of this worker", run.Directory, config.Prefix)
	}
	return run, nil
}

// findConversation restores the conversation that the run resumes, and reports whether it found this conversation. If an
// agent has altered the conversation, the error is an *alteredError.
//
// A missing conversation is not an error, because the CLI looks in more places.
func (r *Runner) findConversation(ctx context.Context, run activities.AgentRun) (found bool, err error) {
	if run.Resume == "" {
		return false, nil
	}
	if err := r.adoptFromLogin(ctx, run); err != nil {
		return false, err
	}
	if err := r.conversations.altered(run.Resume); err != nil {
		return false, err
	}
	resumed, err := r.conversations.copyOf(run.Resume)
	if err != nil {
		return false, err
	}
	found, err = r.conversations.restore(ctx, run.Resume, resumed)
	if err != nil && ctx.Err() == nil { // if ctx has ended, start returns the right status at once
		return false, err
	}
	return found, nil
}

// adoptFromLogin takes in a conversation that a person has had with the login that agents use, unless this host has a copy.
func (r *Runner) adoptFromLogin(ctx context.Context, run activities.AgentRun) error {
	if r.privates.shared == "" {
		return nil
	}
	if _, err := os.Lstat(r.conversations.path(run.Resume)); err == nil {
		return nil
	}
	name, err := claude.TranscriptName(run.Directory, run.Resume)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(r.privates.shared)
	if err != nil {
		return err
	}
	return errors.Join(r.conversations.adopt(ctx, root, run.Resume, inherited{Name: name}), root.Close())
}

// prepare makes the session's own directories, with what the session reads in them. If it fails, nothing of them is left.
func (r *Runner) prepare(ctx context.Context, place workplace, order activities.AgentRun) (activities.AgentRun, *private, error) {
	run, err := place.of(order)
	if err != nil {
		return run, nil, err
	}
	own, err := r.privates.open(ctx, run.SessionID)
	if err != nil {
		return run, nil, err
	}
	if run, err = r.show(ctx, run, own); err == nil {
		own.endSaving, err = r.giveConversation(ctx, own, run)
	}
	if err != nil {
		r.free(ctx, own)
	}
	return run, own, err
}

// giveConversation gives the agent the conversation that it resumes. Then it starts to take in and archive the
// conversation that the agent writes, until the caller calls end, which reports whether the archive has all of it.
func (r *Runner) giveConversation(ctx context.Context, own *private, run activities.AgentRun) (end func() bool, err error) {
	in, err := r.conversations.place(own, run)
	if err != nil {
		return nil, err
	}
	endSaving, err := r.conversations.keep(ctx, in)
	if err != nil {
		return nil, err
	}
	return func() bool {
		limit := lastSaveLimit
		if r.draining.Err() != nil {
			limit = drainSaveLimit
		}
		return endSaving(limit)
	}, nil
}

// free removes the directories of a session.
func (r *Runner) free(ctx context.Context, own *private) {
	if err := own.close(); err != nil {
		r.logger.WarnContext(ctx, "a session's directories could not be removed", "session_id", own.id, "error", err)
	}
}

// openWorkspace sets up the workspace of a session; nil if the session needs none. If that fails, for example in a read-only working
// directory, openWorkspace returns nil, too. The agent can look and repair without a workspace.
func (r *Runner) openWorkspace(ctx context.Context, run activities.AgentRun) *workspace {
	if !run.ChainFiles {
		return nil
	}
	var opened *workspace
	err := r.cli.AsUser(func() (err error) {
		opened, err = openWorkspace(run.Directory, run.ChainID, run.Cooldowns)
		return err
	})
	if err != nil {
		r.logger.WarnContext(ctx, "the agent gets no file of cooldowns", "chain_id", run.ChainID, "session_id", run.SessionID, "error", err)
		return nil
	}
	return opened
}

// closeWorkspace removes the workspace. It returns the file that the agent was asked to leave, with secrets masked.
func (r *Runner) closeWorkspace(ctx context.Context, opened *workspace, run activities.AgentRun) (left activities.LeftFile) {
	if opened == nil {
		left.Problem = "there was no directory to leave it in"
		return left
	}
	err := r.cli.AsUser(func() error {
		if run.LeavesHandoff {
			left = opened.take(activities.HandoffFile, escalation.MaxHandoffBytes)
			left.Content, left.Problem = r.mask.JSON(left.Content), r.mask.Text(left.Problem)
		}
		return opened.close()
	})
	if err != nil {
		r.logger.WarnContext(ctx, "the chain's directory could not be removed", "chain_id", run.ChainID, "error", err)
	}
	return left
}

// confine gives the invocation the session's own directories, and a sandbox. If the session gets no sandbox, confine
// returns the reason (without).
func (r *Runner) confine(
	invocation *claude.Invocation, run activities.AgentRun, opened *workspace, own *private,
) (without string) {
	var chains []string
	for _, directory := range resolved(run.Directory) {
		if opened != nil {
			chains = append(chains, filepath.Join(directory, activities.ChainsDir, opened.name))
		}
	}
	invocation.Sandbox, without = r.sandboxes.of(run, chains)
	if invocation.Sandbox != nil {
		own.grant(invocation.Sandbox)
	}
	maps.Copy(invocation.Env, own.variables())
	return without
}

// invocation converts a run to the input of the claude driver.
func (r *Runner) invocation(run activities.AgentRun, opened *workspace) claude.Invocation {
	// These variables tell the agent's programs to which chain and tier they belong. The driver adds a variable with
	// the session's id.
	env := map[string]string{
		"CLAUDEOPS_CHAIN_ID": run.ChainID,
		"CLAUDEOPS_TIER":     fmt.Sprint(int(run.Tier)),
	}
	if opened != nil {
		env["CLAUDEOPS_CHAIN_DIR"] = opened.path
	}
	return claude.Invocation{
		SessionID:    run.SessionID,
		Resume:       run.Resume,
		Prompt:       run.Prompt,
		Model:        run.Policy.Model,
		SystemPrompt: join(r.settings.Environment, run.SystemPrompt),
		Schema:       run.Schema,
		TextField:    run.TextField,
		Tools:        run.Policy.Tools,
		AllowedTools: run.Policy.AllowedTools,
		MaxTurns:     run.Policy.MaxTurns,
		MaxBudgetUSD: run.Policy.BudgetUSD,
		Limits: claude.Limits{
			Wall:      run.Policy.Timeout.Std(),
			FirstByte: r.settings.FirstByteTimeout,
			Idle:      r.settings.IdleTimeout,
			Grace:     r.settings.StopGrace,
		},
		Dir: run.Directory,
		Env: env,
	}
}
