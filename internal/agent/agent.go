package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/change/checkout"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/redact"
)

// ReportTime limits the time that an interrupted session has after the grace period of its agent. In this time the
// session archives its conversation (cell.HurriedSave) and reports its end to Temporal.
const ReportTime = 10 * time.Second

// Runner runs sessions with the claude CLI.
type Runner struct {
	Options

	host       *cell.Host
	policy     *guard.Policy
	archive    archive
	workplaces workplaces
	mask       *redact.Redactor
	logger     *slog.Logger
	// draining is a context that the function interrupt cancels. When draining ends, every running agent is stopped,
	// and so is every agent that is started afterwards.
	draining  context.Context
	interrupt context.CancelFunc
}

var _ activities.Agent = (*Runner)(nil)

// New returns a Runner. The caller must close it.
func New(ctx context.Context, options Options) (*Runner, error) {
	r := &Runner{
		Options: options, policy: options.Cell.Policy, archive: newArchive(options), mask: options.Cell.Mask,
		logger: options.Cell.Logger,
	}
	r.draining, r.interrupt = context.WithCancel(context.WithoutCancel(ctx))
	options.Cell.Archive, options.Cell.Stopping = r.archive, r.draining
	var err error
	if r.host, err = cell.Open(ctx, options.Cell); err != nil {
		return nil, err
	}
	if r.workplaces, err = newWorkplaces(options, r.host); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Close interrupts the running agents and revokes the agents' keys. After that the guard answers no more calls.
func (r *Runner) Close() error {
	r.interrupt()
	return r.host.Close()
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
	if err := r.host.Reclaim(ctx, order.SessionID); err != nil {
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
	if _, altered := errors.AsType[*cell.AlteredError](err); altered {
		report, _ := notStarted(err)
		report.Status, report.Ending = escalation.SessionResumeFailed, escalation.EndingUnusable
		return report, nil
	}
	if err != nil {
		return notStarted(err)
	}
	spec, err := r.spec(place, run, observe)
	if err != nil {
		return notStarted(err)
	}
	result, err := r.host.Run(ctx, spec)
	report := reportOf(result)
	failure, failed := errors.AsType[*claude.Error](err)
	_, stored := errors.AsType[*cell.StorageError](err)
	switch {
	case err == nil:
		report.Status = escalation.SessionCompleted
		return report, nil
	case stored: // another attempt would fill the disk in the same way
		report.Status, report.Ending = escalation.SessionFailed, escalation.EndingOurLimit
		report.Error = err.Error() + " (CLAUDEOPS_SESSION_DISK)"
		return report, nil
	case errors.Is(err, cell.ErrUnguarded): // another attempt would end in the same way
		report.Status, report.Error, report.Ending = escalation.SessionFailed, err.Error(), escalation.EndingGuard
		return report, nil
	case errors.Is(context.Cause(ctx), activities.ErrDraining):
		report.Status, report.Error = escalation.SessionStopped, err.Error()
		return report, activities.ErrDraining
	case !failed || failure.Kind == claude.KindNotStarted:
		report.Status, report.Error = escalation.SessionFailed, err.Error()
		return report, err
	}
	report.Report = judged(report.Report, failure, run)
	if report.Status == escalation.SessionResumeFailed && !found {
		report.Status = escalation.SessionTranscriptLost
		report.Error += "; it is neither on this host nor in the archive"
	}
	return report, nil
}

// spec translates a run at its workplace for the cell.
func (r *Runner) spec(
	place workplace, run activities.AgentRun, observe func(activities.AgentProgress),
) (cell.Spec, error) {
	run, err := place.of(run)
	if err != nil {
		return cell.Spec{}, err
	}
	spec := cell.Spec{
		SessionID: run.SessionID, Resume: run.Resume, Prompt: run.Prompt, Model: run.Policy.Model,
		SystemPrompt: join(r.Environment, run.SystemPrompt), Schema: run.Schema, TextField: run.TextField,
		LatePrompt: func(ctx context.Context, temporary string) (string, error) {
			prompt, err := r.show(ctx, run, temporary)
			if err != nil || run.LatePrompt == nil {
				return prompt, err
			}
			return run.LatePrompt()
		},
		Tier: int(run.Tier), Policy: place.policyOf(r.policy, run), Tools: run.Policy.Tools,
		AllowedTools: run.Policy.AllowedTools, MaxTurns: run.Policy.MaxTurns, BudgetUSD: run.Policy.BudgetUSD,
		Timeout: run.Policy.Timeout.Std(), Dir: run.Directory,
		Supervisor: session{r.Records, r.Catalog, run, observe},
		// These variables tell the agent's programs to which chain and tier they belong. The driver adds a variable
		// with the session's id.
		Env: map[string]string{"CLAUDEOPS_CHAIN_ID": run.ChainID, "CLAUDEOPS_TIER": fmt.Sprint(int(run.Tier))},
	}
	if run.DryRun {
		spec.Tier = int(escalation.TierObserve)
	}
	place.adjust(&spec)
	if run.ChainFiles {
		cooldowns, err := json.MarshalIndent(escalation.NewCooldownState(run.Cooldowns), "", "  ")
		if err != nil {
			return spec, err
		}
		spec.Workspace = &cell.Workspace{
			Parent: activities.ChainsDir, Name: activities.ChainDirName(run.ChainID), Variable: "CLAUDEOPS_CHAIN_DIR",
			Files: map[string][]byte{activities.CooldownFile: append(cooldowns, '\n')},
		}
		if run.LeavesHandoff {
			spec.Workspace.Asked, spec.Workspace.MaxBytes = activities.HandoffFile, escalation.MaxHandoffBytes
		}
	}
	return spec, nil
}

// HasConversation implements activities.Agent. If a conversation is in the archive, but not on this host,
// HasConversation copies it to this host.
func (r *Runner) HasConversation(ctx context.Context, directory, sessionID string) (bool, error) {
	run, err := r.inDirectory(activities.AgentRun{Directory: directory, Resume: sessionID})
	if err != nil {
		return false, err
	}
	if err := r.host.Reclaim(ctx, sessionID); err != nil {
		return false, err
	}
	if _, err := r.findConversation(ctx, run); err != nil && ctx.Err() == nil {
		if _, altered := errors.AsType[*cell.AlteredError](err); altered {
			return false, nil
		}
		return false, err
	}
	return claude.HoldsMessage(r.host.Conversation(sessionID))
}

// Concluded implements activities.Agent.
func (r *Runner) Concluded(ctx context.Context, sessionID, parentID string) (*activities.AgentReport, error) {
	if _, err := claude.EndSession(sessionID); err != nil {
		return nil, err
	}
	if err := r.host.Reclaim(ctx, sessionID); err != nil {
		return nil, err
	}
	path, parent := r.host.Conversation(sessionID), ""
	if parentID != "" {
		parent = r.host.Conversation(parentID)
	}
	found, err := claude.ReadConclusion(path, parent)
	if errors.Is(err, fs.ErrNotExist) { // for example, this host lacks the parent
		return nil, nil
	}
	if err != nil || found == nil {
		return nil, err
	}
	return &activities.AgentReport{
		Unarchived: !r.archive.saveLeft(ctx, sessionID, path),
		Report: escalation.Report{
			Status: escalation.SessionCompleted, Turns: found.Turns, Tokens: escalation.TokenUsage(found.Tokens),
			Cost:          escalation.Cost{CostUSD: found.CostUSD, CostEstimated: true},
			ContextTokens: found.ContextTokens, ReportedSessionID: sessionID,
		},
		Output: r.mask.JSON(found.Output), Calls: found.Calls,
	}, nil
}

// inDirectory returns run with its working directory filled in. A chain can name the directory, but this host's
// configuration decides whether agents are permitted to work there. A refusal is an error, because another worker may
// permit the directory.
func (r *Runner) inDirectory(run activities.AgentRun) (activities.AgentRun, error) {
	if run.Directory == "" {
		run.Directory = r.WorkDir
	} else if !slices.Contains(r.Repositories, run.Directory) {
		return run, fmt.Errorf("%s is not in CLAUDEOPS_REPOSITORIES of this worker", run.Directory)
	}
	return run, nil
}

// findConversation restores the conversation that the run resumes, and reports whether it found this conversation. If
// an agent has altered the conversation, the error is a *cell.AlteredError.
//
// A missing conversation is not an error, because the CLI looks in more places.
func (r *Runner) findConversation(ctx context.Context, run activities.AgentRun) (found bool, err error) {
	if run.Resume == "" {
		return false, nil
	}
	if err := r.host.AdoptFromLogin(ctx, run.Directory, run.Resume); err != nil {
		return false, err
	}
	if err := r.host.Altered(run.Resume); err != nil {
		return false, err
	}
	return r.archive.restore(ctx, run.Resume, r.host.Conversation(run.Resume))
}

// show gives a session the files of the commit that it must judge, in its own directory for temporary files, and
// returns the prompt with their name. If this host cannot do that, the prompt says why.
func (r *Runner) show(ctx context.Context, run activities.AgentRun, temporary string) (prompt string, err error) {
	if run.Shown == nil {
		return run.Prompt, nil
	}
	dir, err := r.workplaces.keeper.Show(ctx, run.Directory, checkout.Checkpoint(run.Shown.Checkpoint), temporary)
	problem := ""
	if err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		dir, problem = "", r.mask.Text(err.Error())
		r.logger.WarnContext(ctx, "a reviewer does not get the files of a change", "session_id", run.SessionID,
			"error", problem)
	}
	section, err := run.Shown.Describe(dir, problem)
	return run.Prompt + "\n\n" + section, err
}
