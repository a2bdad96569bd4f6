package reconcile

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
)

// fakeTemporal describes one workflow, and stores how its activity was completed.
type fakeTemporal struct {
	pending     *workflowpb.PendingActivityInfo
	describeErr error
	completeErr error

	token  []byte
	failed error
}

var _ Completer = (*fakeTemporal)(nil)

func (f *fakeTemporal) DescribeWorkflowExecution(
	context.Context, string, string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if f.describeErr != nil {
		return nil, f.describeErr
	}
	described := &workflowservice.DescribeWorkflowExecutionResponse{}
	if f.pending != nil {
		described.PendingActivities = []*workflowpb.PendingActivityInfo{f.pending}
	}
	return described, nil
}

func (f *fakeTemporal) CompleteActivity(_ context.Context, token []byte, _ any, err error) error {
	f.token, f.failed = token, err
	return f.completeErr
}

// pendingActivity returns the activity 7 of a workflow, at the given attempt of at most five.
func pendingActivity(state enumspb.PendingActivityState, attempt int32) *workflowpb.PendingActivityInfo {
	return &workflowpb.PendingActivityInfo{ActivityId: "7", State: state, Attempt: attempt, MaximumAttempts: 5}
}

func TestOrphanedActivities(t *testing.T) {
	t.Parallel()
	started, away := enumspb.PENDING_ACTIVITY_STATE_STARTED, errors.New("away")
	for name, tc := range map[string]struct {
		temporal fakeTemporal
		failed   bool
		want     error
	}{
		"one that Temporal would retry":  {temporal: fakeTemporal{pending: pendingActivity(started, 4)}, failed: true},
		"the last attempt":               {temporal: fakeTemporal{pending: pendingActivity(started, 5)}},
		"one that is being cancelled":    {temporal: fakeTemporal{pending: pendingActivity(enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED, 1)}},
		"one that waits for its next":    {temporal: fakeTemporal{pending: pendingActivity(enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, 2)}},
		"one that has ended":             {temporal: fakeTemporal{}},
		"one that ends in the meantime":  {temporal: fakeTemporal{pending: pendingActivity(started, 4), completeErr: serviceerror.NewNotFound("ended")}, failed: true},
		"one of an unknown workflow":     {temporal: fakeTemporal{describeErr: serviceerror.NewNotFound("unknown")}},
		"Temporal cannot be asked":       {temporal: fakeTemporal{describeErr: away}, want: away},
		"Temporal cannot be told of one": {temporal: fakeTemporal{pending: pendingActivity(started, 4), completeErr: away}, failed: true, want: away},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attempt := lease{WorkflowID: "chain", RunID: "run", ActivityID: "7", Token: []byte{1}}
			require.ErrorIs(t, attempt.fail(t.Context(), &tc.temporal), tc.want)
			if !tc.failed {
				require.Nil(t, tc.temporal.token)
				return
			}
			require.Equal(t, attempt.Token, tc.temporal.token)
			failure, ok := errors.AsType[*temporal.ApplicationError](tc.temporal.failed)
			require.True(t, ok)
			require.Equal(t, errorTypeWorkerLost, failure.Type())
			require.Equal(t, activities.HandOverDelay, failure.NextRetryDelay())
		})
	}
}

// TestFailOrphaned checks that the activities of a dead worker are failed once, and that the activities of a running
// worker are not failed.
func TestFailOrphaned(t *testing.T) {
	t.Parallel()
	l, logged := testLeases(t)
	alive, err := l.create(lease{ActivityID: "7", Token: []byte{1}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = alive.lock.Close() }) // until then it is in use, so the garbage collector does not close the file
	died, err := l.create(lease{ActivityID: "7", Token: []byte{2}})
	require.NoError(t, err)
	require.NoError(t, died.lock.Close(), "as the kernel does when a process dies")

	first := &fakeTemporal{pending: pendingActivity(enumspb.PENDING_ACTIVITY_STATE_STARTED, 1), completeErr: errors.New("away")}
	l.FailOrphaned(t.Context(), first)
	require.Equal(t, []byte{2}, first.token)
	require.Contains(t, logged.String(), "cannot fail an activity of a worker that died")
	second := &fakeTemporal{pending: first.pending}
	l.FailOrphaned(t.Context(), second)
	require.Nil(t, second.token, "it waits for its time-out")
}
