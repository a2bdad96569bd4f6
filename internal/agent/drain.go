package agent

import (
	"context"
	"errors"
	"time"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// Interrupt ends all running agents, and every agent that is started afterwards. Run then returns
// activities.ErrDraining.
func (r *Runner) Interrupt() { r.interrupt() }

// leaveLimit limits the time in which a worktree is examined at the end of a session.
func (r *Runner) leaveLimit() time.Duration {
	if r.draining.Err() != nil {
		return drainLeaveLimit
	}
	return leaveLimit
}

// untilDrained returns a context that also ends, with the cause activities.ErrDraining, when running agents are
// interrupted. The caller must call stop.
func (r *Runner) untilDrained(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(r.draining, func() { cancel(activities.ErrDraining) })
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}

// inspected adds to the report of an agent that has ended what it has committed. If the checks are stopped with the
// worker, they say nothing about the commit. The error then is activities.ErrDraining, and another attempt repeats
// them.
func (r *Runner) inspected(
	ctx context.Context, place workplace, run activities.AgentRun, report activities.AgentReport,
	observe func(activities.AgentProgress),
) (activities.AgentReport, error) {
	change := r.inspect(ctx, place, run, func(now activities.AgentProgress) {
		// If the worker dies meanwhile, the next attempt must know that the agent has worked, and what it has spent.
		now.Turns, now.Tokens, now.CostUSD, now.InFlight = report.Turns, report.Tokens, report.CostUSD, report.InFlight
		observe(now)
	})
	if change == nil || ctx.Err() == nil {
		report.Change = change
		return report, nil
	}
	report.Status, report.Error, report.Output = escalation.SessionStopped, "it was stopped while the checks ran", nil
	if errors.Is(context.Cause(ctx), activities.ErrDraining) {
		return report, activities.ErrDraining
	}
	return report, nil
}

// stopped returns the report of a run that was stopped while it waited for its workplace.
func (r *Runner) stopped(ctx context.Context, err error) (activities.AgentReport, error) {
	report, _ := notStarted(err)
	report.Status = escalation.SessionStopped
	if errors.Is(context.Cause(ctx), activities.ErrDraining) {
		return report, activities.ErrDraining
	}
	return report, nil
}
