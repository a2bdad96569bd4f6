package daily

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	activitypb "go.temporal.io/api/activity/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

// refused returns the failure of an attempt whose agent could not reach its model.
func refused() *failurepb.Failure {
	return &failurepb.Failure{Message: "the API call failed: Connection refused"}
}

// timedOut returns the failure of an attempt that Temporal has timed out.
func timedOut(kind enumspb.TimeoutType) *failurepb.Failure {
	info := &failurepb.TimeoutFailureInfo{TimeoutType: kind}
	return &failurepb.Failure{Message: "activity timeout", FailureInfo: &failurepb.Failure_TimeoutFailureInfo{TimeoutFailureInfo: info}}
}

func TestEffort(t *testing.T) {
	t.Parallel()
	const (
		waiting = enumspb.PENDING_ACTIVITY_STATE_SCHEDULED
		taken   = enumspb.PENDING_ACTIVITY_STATE_STARTED
	)
	at := func(after time.Duration) *timestamppb.Timestamp { return timestamppb.New(chaintest.Noon.Add(after)) }
	for name, test := range map[string]struct {
		pending *workflowpb.PendingActivityInfo
		heard   int // the attempt of the last heartbeat; 0 if there was none
		waits   string
		want    string
	}{
		"on its way to a worker": {
			pending: &workflowpb.PendingActivityInfo{State: waiting, Attempt: 1, ScheduledTime: at(-time.Second)},
		},
		"taken and not heard of": {
			pending: &workflowpb.PendingActivityInfo{State: taken, Attempt: 1, ScheduledTime: at(-time.Minute)},
		},
		"at work": {
			pending: &workflowpb.PendingActivityInfo{State: taken, Attempt: 1}, heard: 1,
			want: "attempt 1, by worker process 4711 on host-1",
		},
		"being cancelled": {
			pending: &workflowpb.PendingActivityInfo{State: enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED, Attempt: 1}, heard: 1,
			want: "attempt 1, by worker process 4711 on host-1",
		},
		"no worker is free": {
			pending: &workflowpb.PendingActivityInfo{State: waiting, Attempt: 1, ScheduledTime: at(-time.Minute)},
			waits:   "waits for a free worker",
			want:    "attempt 1 waits for a free worker on task queue claudeops-agents",
		},
		"no worker is free again": {
			pending: &workflowpb.PendingActivityInfo{
				State: waiting, Attempt: 2, ScheduledTime: at(-time.Minute), LastFailure: timedOut(enumspb.TIMEOUT_TYPE_HEARTBEAT),
			},
			heard: 1, waits: "waits for a free worker",
			want: "attempt 2 waits for a free worker on task queue claudeops-agents; attempt 1 ended: its worker was not heard of any more",
		},
		"it failed": {
			pending: &workflowpb.PendingActivityInfo{
				State: waiting, Attempt: 4, ScheduledTime: at(90 * time.Second), NextAttemptScheduleTime: at(90 * time.Second), LastFailure: refused(),
			},
			heard: 3, waits: "waits for the next attempt",
			want: "attempt 4 starts at 12:01:30 UTC; attempt 3 ended: the API call failed: Connection refused",
		},
		"at work again, and not heard of": {
			pending: &workflowpb.PendingActivityInfo{State: taken, Attempt: 2, LastFailure: timedOut(enumspb.TIMEOUT_TYPE_START_TO_CLOSE)}, heard: 1,
			want: "attempt 1 ended: its worker did not end it in time",
		},
		"at work again": {
			pending: &workflowpb.PendingActivityInfo{State: taken, Attempt: 2, LastFailure: refused()}, heard: 2,
			want: "attempt 2, by worker process 4711 on host-1; attempt 1 ended: the API call failed: Connection refused",
		},
		"paused": {
			pending: &workflowpb.PendingActivityInfo{State: enumspb.PENDING_ACTIVITY_STATE_PAUSED, Attempt: 1, ScheduledTime: at(-time.Minute)},
			waits:   "paused",
			want:    "attempt 1 is paused in Temporal",
		},
		"an agent's words": {
			pending: &workflowpb.PendingActivityInfo{
				State: taken, Attempt: 2, LastFailure: &failurepb.Failure{Message: "\x1b[2J\r\n" + strings.Repeat("x", 400)},
			},
			want: "attempt 1 ended: [2J  " + strings.Repeat("x", 300-6) + "…",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.pending.ActivityOptions = &activitypb.ActivityOptions{TaskQueue: &taskqueuepb.TaskQueue{Name: "claudeops-agents"}}
			now := operations.Snapshot{Attempt: operations.NewAttempt(test.pending, converter.GetDefaultDataConverter(), chaintest.Noon)}
			if test.heard > 0 {
				now.Progress = &activities.TierProgress{Host: "host-1", WorkerPID: 4711, Attempt: test.heard}
			}
			require.Equal(t, test.want, effort(chaintest.Clock, now))
			require.Equal(t, test.waits, now.Attempt.Waits())
		})
	}
	require.Empty(t, effort(chaintest.Clock, operations.Snapshot{}), "no session runs")
}

func TestStatusSaysForWhatASessionWaits(t *testing.T) {
	t.Parallel()
	now := operations.Snapshot{
		Attempt: &operations.Attempt{State: operations.AttemptStarted, Number: 1},
		Progress: &activities.TierProgress{
			Host: "host-1", WorkerPID: 4711, Attempt: 1, Now: activities.AgentProgress{Waiting: "session 7 repairs in /srv/infra"},
		},
	}
	require.Equal(t, "attempt 1, by worker process 4711 on host-1, waits: session 7 repairs in /srv/infra", statusOf(chaintest.Clock, now))
}

// TestPrinterSaysWhatAChainWaitsFor checks that a silent chain says once what it waits for.
func TestPrinterSaysWhatAChainWaitsFor(t *testing.T) {
	t.Parallel()
	var told bytes.Buffer
	printer := NewPrinter(&console.Console{
		Process: program.Process{Stdout: &told}, Clock: chaintest.Clock, Output: console.Text,
	})
	const waits = "OpenSession, which is tried again: the database takes no writes"
	for _, now := range []operations.Snapshot{{}, {Waits: waits}, {Waits: waits}, {}, {Waits: waits}} {
		printer.Saw(now)
	}
	require.Equal(t, strings.Repeat("12:00:00 UTC  waits for "+waits+"\n", 2), told.String())
}

func TestPrinterPrintsEachAttemptOnce(t *testing.T) {
	t.Parallel()
	var told bytes.Buffer
	printer := NewPrinter(&console.Console{
		Process: program.Process{Stdout: &told}, Clock: chaintest.Clock, Output: console.Text,
	})
	printer.lastEvent = "1"
	heard := func(number int) *activities.TierProgress {
		return &activities.TierProgress{SessionID: chaintest.Conversation(2), Host: "host-1", WorkerPID: 4711, Attempt: number}
	}
	const failure = "the API call failed: Connection refused"
	for _, now := range []operations.Snapshot{
		{Attempt: &operations.Attempt{State: operations.AttemptStarted, Number: 1}},
		{Attempt: &operations.Attempt{State: operations.AttemptQueued, Number: 1, Queue: "q"}},
		{Attempt: &operations.Attempt{State: operations.AttemptStarted, Number: 1}, Progress: heard(1)},
		{Attempt: &operations.Attempt{State: operations.AttemptScheduled, Number: 2, StartsAt: chaintest.Noon.Add(10 * time.Second), Failure: failure}, Progress: heard(1)},
		{Attempt: &operations.Attempt{State: operations.AttemptStarted, Number: 2, Failure: failure}, Progress: heard(1)},
		{Attempt: &operations.Attempt{State: operations.AttemptStarted, Number: 2, Failure: failure}, Progress: heard(2)},
		{Attempt: &operations.Attempt{State: operations.AttemptScheduled, Number: 3, StartsAt: chaintest.Noon.Add(40 * time.Second), Failure: failure}, Progress: heard(2)},
		{}, // Temporal reported nothing
	} {
		now.Chain = chaintest.Working()
		printer.Saw(now)
		printer.Saw(now)
	}
	require.Equal(t, []string{
		"12:00:00 UTC    attempt 1 waits for a free worker on task queue q",
		"12:00:00 UTC    attempt 1, by worker process 4711 on host-1",
		"12:00:00 UTC    attempt 1 ended: " + failure,
		"12:00:00 UTC    attempt 2 starts at 12:00:10 UTC",
		"12:00:00 UTC    attempt 2, by worker process 4711 on host-1",
		"12:00:00 UTC    attempt 2 ended: " + failure,
		"12:00:00 UTC    attempt 3 starts at 12:00:40 UTC",
		"",
	}, strings.Split(told.String(), "\n"))
}
