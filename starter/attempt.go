package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// takeGrace is how long an attempt may be on its way to a worker before it counts as waiting for a
// free one. A worker that is free takes it within a fraction of that.
const takeGrace = 2 * time.Second

// tierAttempt is the attempt at the session that runs, as Temporal tells it.
type tierAttempt struct {
	state attemptState
	// number counts the attempts at the session, this one included.
	number int
	// startsAt is when a scheduled attempt is to start.
	startsAt time.Time
	// queue is the task queue of the workers that may take it.
	queue string
	// failure is why the attempt before ended; empty if there was none. It may be in an agent's words.
	failure string
}

// attemptState is how far an attempt has come.
type attemptState string

// The states.
const (
	attemptStarted   attemptState = "started"   // a worker has it, or is about to
	attemptScheduled attemptState = "scheduled" // it waits for its time
	attemptQueued    attemptState = "queued"    // it waits for a worker that is free
	attemptPaused    attemptState = "paused"    // somebody has paused it in Temporal
)

// attemptAt returns the attempt at the session of a chain that runs, and the last heartbeat of the
// session. Each is nil if there is none, or if Temporal does not tell now.
func attemptAt(ctx context.Context, c client.Client, id string, chain escalation.Chain) (*tierAttempt, *activities.TierProgress) {
	running := chain.Last()
	if running == nil || running.Status != escalation.SessionRunning {
		return nil, nil
	}
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err != nil || described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil, nil // those of a chain that was terminated are still listed
	}
	for _, pending := range described.GetPendingActivities() {
		if slices.Contains(activities.AgentActivities(), pending.GetActivityType().GetName()) {
			return newTierAttempt(pending, time.Now()), progressOf(pending, running.SessionID)
		}
	}
	return nil, nil
}

func newTierAttempt(pending *workflowpb.PendingActivityInfo, now time.Time) *tierAttempt {
	a := &tierAttempt{
		state:   attemptStarted,
		number:  int(pending.GetAttempt()),
		queue:   pending.GetActivityOptions().GetTaskQueue().GetName(),
		failure: failureText(pending.GetLastFailure()),
	}
	next := pending.GetNextAttemptScheduleTime()
	switch state := pending.GetState(); {
	case state == enumspb.PENDING_ACTIVITY_STATE_PAUSED:
		a.state = attemptPaused
	case state != enumspb.PENDING_ACTIVITY_STATE_SCHEDULED:
	case next != nil:
		a.state, a.startsAt = attemptScheduled, next.AsTime()
	case now.Sub(pending.GetScheduledTime().AsTime()) > takeGrace:
		a.state = attemptQueued
	}
	return a
}

// failureText says why an attempt ended.
func failureText(failure *failurepb.Failure) string {
	switch failure.GetTimeoutFailureInfo().GetTimeoutType() {
	case enumspb.TIMEOUT_TYPE_HEARTBEAT:
		return "its worker was not heard of any more"
	case enumspb.TIMEOUT_TYPE_START_TO_CLOSE:
		return "its worker did not end it in time"
	default:
		return failure.GetMessage()
	}
}

// progressOf returns the last heartbeat of an activity, if it is about that session.
func progressOf(pending *workflowpb.PendingActivityInfo, sessionID string) *activities.TierProgress {
	var progress activities.TierProgress
	details := pending.GetHeartbeatDetails()
	if details == nil || converter.GetDefaultDataConverter().FromPayloads(details, &progress) != nil || progress.SessionID != sessionID {
		return nil
	}
	return &progress
}

// before says why the attempt before ended; "" if there was none.
func (t *tierAttempt) before() string {
	if t == nil || t.failure == "" {
		return ""
	}
	return fmt.Sprintf("attempt %d ended: %s", t.number-1, printable(t.failure, 300))
}

// waits says in a word or a few what the attempt waits for; "" if it does not wait.
func (t *tierAttempt) waits() string {
	if t == nil {
		return ""
	}
	switch t.state {
	case attemptStarted:
		return ""
	case attemptScheduled:
		return "waits for the next attempt"
	case attemptQueued:
		return "waits for a free worker"
	case attemptPaused:
		return "paused"
	}
	return ""
}

// standing says where the session that runs is at work, or what it waits for; "" if neither is known.
func (a *app) standing(now sight) string {
	at, progress := now.attempt, now.progress
	if at == nil {
		return ""
	}
	switch at.state {
	case attemptStarted:
		// The heartbeat of the attempt before stays until there is one of this.
		if progress != nil && progress.WorkerPID != 0 && progress.Attempt >= at.number {
			return workerOf(*progress)
		}
	case attemptScheduled:
		return fmt.Sprintf("attempt %d starts at %s", at.number, a.clock(at.startsAt))
	case attemptQueued:
		return fmt.Sprintf("attempt %d waits for a free worker on task queue %s", at.number, printable(at.queue, 200))
	case attemptPaused:
		return fmt.Sprintf("attempt %d is paused in Temporal", at.number)
	}
	return ""
}

// effort is all of that in a line.
func (a *app) effort(now sight) string {
	says := []string{a.standing(now), now.attempt.before()}
	return strings.Join(slices.DeleteFunc(says, func(text string) bool { return text == "" }), "; ")
}
