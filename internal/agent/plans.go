package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation/review"
)

var _ activities.Plans = (*Runner)(nil)

// ReadPlan implements activities.Plans.
func (r *Runner) ReadPlan(ctx context.Context, request activities.PlanRequest) (activities.PlanResult, error) {
	run, err := r.inDirectory(activities.AgentRun{Directory: request.Directory})
	if err != nil {
		return activities.PlanResult{}, err
	}
	found, err := r.workplaces.keeper.Document(ctx, run.Directory, request.File, maxPlan)
	if err != nil && ctx.Err() != nil {
		return activities.PlanResult{}, err
	}
	var result activities.PlanResult
	if err == nil {
		result.Plan, err = review.ParsePlan(r.mask.Text(found.Text))
	}
	if err != nil {
		result.Problem = r.mask.Text(fmt.Sprintf("%s in %s: %s", request.File, run.Directory, err))
		return result, nil
	}
	result.NoRemote = found.Remote == ""
	result.Change = activities.Change{
		Base: found.Commit, Commit: found.Commit, Within: found.Path, Patch: r.mask.Text(found.Patch),
		Checks: review.QualityNone, Fork: found.Commit,
	}
	if result.Change.Patch != found.Patch || review.Hidden(found.Patch) {
		result.Change.Doubts = []string{"the reviewer cannot read the plan as it is, because of a secret or of " +
			"hidden characters"}
	}
	return result, nil
}

// Inspect implements activities.Plans.
func (r *Runner) Inspect(
	ctx context.Context, order activities.AgentRun, observe func(activities.AgentProgress),
) (*activities.Change, error) {
	ctx, stop := r.untilDrained(ctx)
	defer stop()
	run, err := r.inDirectory(order)
	if err != nil {
		return nil, err
	}
	place, err := r.workplaces.enter(ctx, run, observe)
	if err != nil {
		return nil, err
	}
	change := r.inspect(ctx, place, run, observe)
	place.leave(ctx, r.leaveLimit())
	if ctx.Err() != nil { // what was stopped says nothing about the commit
		return nil, context.Cause(ctx)
	}
	if change == nil {
		return nil, errors.New("the run has no worktree on this host")
	}
	return change, nil
}
