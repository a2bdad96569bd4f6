package reconcile

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
)

// errorTypeWorkerLost is the type of the application error that ends an attempt whose worker died.
const errorTypeWorkerLost = "WorkerLost"

// orphansLimit limits the time for failing the activities of dead workers.
const orphansLimit = 10 * time.Second

// Describer describes workflows. A Temporal client implements it.
type Describer interface {
	DescribeWorkflowExecution(ctx context.Context, workflowID,
		runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
}

// Completer ends activities by their task tokens. A Temporal client implements it.
type Completer interface {
	Describer
	CompleteActivity(ctx context.Context, taskToken []byte, result any, err error) error
}

// FailOrphaned fails the activities whose worker on this host has died, so that Temporal retries them at once. If an
// activity cannot be failed now, Temporal retries that activity after its timeout.
func (l *Leases) FailOrphaned(ctx context.Context, c Completer) {
	ctx, cancel := context.WithTimeout(ctx, orphansLimit)
	defer cancel()
	orphaned, err := l.takeOrphaned()
	if err != nil {
		l.logger.Warn("cannot read all leases of workers that died; their activities wait for their time-out", "error",
			err)
	}
	for _, attempt := range orphaned {
		if err := attempt.fail(ctx, c); err != nil {
			l.logger.Warn("cannot fail an activity of a worker that died; it waits for its time-out",
				"chain", attempt.WorkflowID, "activity_id", attempt.ActivityID, "error", err)
		}
	}
}

// fail fails the attempt, so that Temporal starts the next attempt. If the attempt has already ended, or if Temporal
// would not retry it, fail changes nothing and returns nil.
func (attempt lease) fail(ctx context.Context, c Completer) error {
	retried, err := attempt.isRetried(ctx, c)
	if err != nil || !retried {
		return err
	}
	lost := temporal.NewApplicationErrorWithOptions("the worker died", errorTypeWorkerLost,
		temporal.ApplicationErrorOptions{NextRetryDelay: activities.HandOverDelay})
	err = c.CompleteActivity(ctx, attempt.Token, nil, lost)
	if _, ended := errors.AsType[*serviceerror.NotFound](err); ended {
		return nil
	}
	return err
}

// isRetried reports whether Temporal would start another attempt. If not, do not fail the attempt, so that it ends by
// its timeout. Only a timeout gives the workflow the last heartbeat, which holds the spending of the session.
func (attempt lease) isRetried(ctx context.Context, c Describer) (bool, error) {
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
