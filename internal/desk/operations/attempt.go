package operations

import (
	"context"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/encryption"
)

// takeGrace is the time after which a scheduled attempt counts as waiting for a free worker. A free worker takes an
// attempt much sooner.
const takeGrace = 2 * time.Second

// Attempt is the current attempt at the running session, as Temporal reports it.
type Attempt struct {
	State AttemptState `json:"state"`
	// Number is the number of this attempt at the session, from 1.
	Number int `json:"number"`
	// StartsAt is the time at which an attempt in the state AttemptScheduled starts.
	StartsAt time.Time `json:"starts_at,omitzero"`
	// Queue is the task queue whose workers can take the attempt.
	Queue string `json:"queue,omitempty"`
	// Failure says why the previous attempt ended; empty if there was no previous attempt. It can contain an agent's
	// words.
	Failure string `json:"failure,omitempty"`
}

// AttemptState is the state of an attempt, as a person sees it.
type AttemptState string

// The states.
const (
	AttemptStarted   AttemptState = "started"   // a worker runs the attempt, or will take it within takeGrace
	AttemptScheduled AttemptState = "scheduled" // the attempt waits for its start time
	AttemptQueued    AttemptState = "queued"    // the attempt waits for a free worker
	AttemptPaused    AttemptState = "paused"    // somebody has paused the attempt in Temporal
)

// AttemptAt returns the current attempt at the chain's running session, and the last heartbeat of that session. Each of
// the two is nil if it does not exist, or if Temporal cannot report it now.
func AttemptAt(
	ctx context.Context, c Connection, id string, chain escalation.Chain,
) (*Attempt, *activities.TierProgress) {
	running := chain.Last()
	if running == nil || running.Status != escalation.SessionRunning {
		return nil, nil
	}
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err != nil || described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil, nil // a terminated chain still lists its activities
	}
	return attemptIn(described.GetPendingActivities(), c, running.SessionID)
}

// attemptIn returns the attempt at a session among the pending activities of its chain, and the last heartbeat of that
// session. If sessionID is empty, a heartbeat of any session counts.
func attemptIn(
	pending []*workflowpb.PendingActivityInfo, c Connection, sessionID string,
) (*Attempt, *activities.TierProgress) {
	for _, activity := range pending {
		if slices.Contains(activities.AgentActivities(), activity.GetActivityType().GetName()) {
			return NewAttempt(activity, c.Converter, time.Now()), progressOf(activity, c.Converter, sessionID)
		}
	}
	return nil, nil
}

// NewAttempt converts a pending activity to an attempt. The argument data decodes the failure of the previous attempt.
func NewAttempt(pending *workflowpb.PendingActivityInfo, data converter.DataConverter, now time.Time) *Attempt {
	a := &Attempt{
		State:   AttemptStarted,
		Number:  int(pending.GetAttempt()),
		Queue:   pending.GetActivityOptions().GetTaskQueue().GetName(),
		Failure: failureText(pending.GetLastFailure(), data),
	}
	next := pending.GetNextAttemptScheduleTime()
	switch state := pending.GetState(); {
	case state == enumspb.PENDING_ACTIVITY_STATE_PAUSED:
		a.State = AttemptPaused
	case state != enumspb.PENDING_ACTIVITY_STATE_SCHEDULED:
	case next != nil:
		a.State, a.StartsAt = AttemptScheduled, next.AsTime()
	case now.Sub(pending.GetScheduledTime().AsTime()) > takeGrace:
		a.State = AttemptQueued
	}
	return a
}

// failureText returns why an attempt ended.
func failureText(failure *failurepb.Failure, data converter.DataConverter) string {
	switch failure.GetTimeoutFailureInfo().GetTimeoutType() {
	case enumspb.TIMEOUT_TYPE_HEARTBEAT:
		return "its worker was not heard of any more"
	case enumspb.TIMEOUT_TYPE_START_TO_CLOSE:
		return "its worker did not end it in time"
	default:
		return encryption.FailureMessage(data, failure)
	}
}

// progressOf returns the last heartbeat of an activity. If the activity has sent none, or if the heartbeat belongs to
// another session, progressOf returns nil. If sessionID is empty, a heartbeat of any session counts.
func progressOf(
	pending *workflowpb.PendingActivityInfo, data converter.DataConverter, sessionID string,
) *activities.TierProgress {
	var progress activities.TierProgress
	details := pending.GetHeartbeatDetails()
	if details == nil || data.FromPayloads(details, &progress) != nil ||
		sessionID != "" && progress.SessionID != sessionID {
		return nil
	}
	return &progress
}

// Before says why the previous attempt ended; "" if there was no previous attempt.
func (a *Attempt) Before() string {
	if a == nil || a.Failure == "" {
		return ""
	}
	return fmt.Sprintf("attempt %d ended: %s", a.Number-1, line(a.Failure, 300))
}

// Waits says in a few words for what the attempt waits; "" if the attempt does not wait.
func (a *Attempt) Waits() string {
	if a == nil {
		return ""
	}
	switch a.State {
	case AttemptStarted:
		return ""
	case AttemptScheduled:
		return "waits for the next attempt"
	case AttemptQueued:
		return "waits for a free worker"
	case AttemptPaused:
		return "paused"
	}
	return ""
}
