package supervisor

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
)

// errorTypeWorkerLost is the type of the application error that stands for an attempt whose
// worker died.
const errorTypeWorkerLost = "WorkerLost"

// handBackLimit bounds telling Temporal of the activities of workers that have died.
const handBackLimit = 10 * time.Second

// handBack tells Temporal of the activities whose worker on this host has died, so that they go on
// now and not after a time-out. What cannot be told is left to that.
func (s *Supervisor) handBack(ctx context.Context, c client.Client) {
	ctx, cancel := context.WithTimeout(ctx, handBackLimit)
	defer cancel()
	orphaned, err := s.claims.takeOrphaned()
	if err != nil {
		s.logger.Warn("cannot tell all that a worker that died has left behind; it waits for its time-out", "error", err)
	}
	for _, attempt := range orphaned {
		logger := s.logger.With("chain", attempt.WorkflowID, "activity_id", attempt.ActivityID)
		if err := attempt.handBack(ctx, c); err != nil {
			logger.Warn("an activity of a worker that died cannot be handed back; it waits for its time-out", "error", err)
		}
	}
}

// handBack ends the attempt for Temporal, which begins another one. One that has ended for
// Temporal, too, is refused by it.
func (attempt claim) handBack(ctx context.Context, c client.Client) error {
	goesOn, err := attempt.hasNext(ctx, c)
	if err != nil || !goesOn {
		return err
	}
	lost := temporal.NewApplicationErrorWithOptions("the worker died", errorTypeWorkerLost,
		temporal.ApplicationErrorOptions{NextRetryDelay: activities.HandOverDelay})
	err = c.CompleteActivity(ctx, attempt.Token, nil, lost)
	if _, over := errors.AsType[*serviceerror.NotFound](err); over {
		return nil
	}
	return err
}

// hasNext reports whether Temporal would begin another attempt. If it would not, the workflow is to
// hear of the time-out: only that tells it what the last heartbeat said, the cost among it.
func (attempt claim) hasNext(ctx context.Context, c client.Client) (bool, error) {
	described, err := c.DescribeWorkflowExecution(ctx, attempt.WorkflowID, attempt.RunID)
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, pending := range described.GetPendingActivities() {
		if pending.GetActivityId() == attempt.ActivityID {
			last := pending.GetMaximumAttempts() > 0 && pending.GetAttempt() >= pending.GetMaximumAttempts()
			return !last && pending.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED, nil
		}
	}
	return false, nil
}

// claiming has a worker claim each activity that it runs.
type claiming struct {
	interceptor.WorkerInterceptorBase
	claims claims
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (c *claiming) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &claimedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}, c.claims}
}

type claimedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	claims claims
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (a *claimedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	release := a.claims.hold(activity.GetInfo(ctx))
	defer release()
	return a.Next.ExecuteActivity(ctx, in)
}
