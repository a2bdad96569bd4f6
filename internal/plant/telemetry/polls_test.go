package telemetry

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	taskqueue "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

func TestPolls(t *testing.T) {
	t.Parallel()
	p := &polls{}
	poll := func(ctx context.Context, queue string, err error) {
		t.Helper()
		got := p.intercept(ctx, "/temporal.api.workflowservice.v1.WorkflowService/PollActivityTaskQueue",
			&workflowservice.PollActivityTaskQueueRequest{TaskQueue: &taskqueue.TaskQueue{Name: queue}}, nil, nil,
			func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return err })
		require.Equal(t, err, got)
	}
	refused := errors.New("permission denied")
	later := func() time.Time { return time.Now().Add(pollPatience + time.Minute) }
	poll(t.Context(), "a", nil)
	require.NoError(t, p.check(later()))
	poll(t.Context(), "a", refused)
	require.NoError(t, p.check(time.Now()), "one failure is normal")
	require.ErrorContains(t, p.check(later()), "polls for tasks have failed")
	poll(t.Context(), "b", nil)
	require.Error(t, p.check(later()), "the other queue still fails")
	poll(t.Context(), "a", nil)
	require.NoError(t, p.check(later()))

	ended, end := context.WithCancel(t.Context())
	end()
	poll(ended, "a", refused)
	require.NoError(t, p.check(later()), "the worker has ended the poll itself")
	require.ErrorIs(t, p.intercept(t.Context(), "/temporal.api.workflowservice.v1.WorkflowService/StartWorkflowExecution",
		&workflowservice.StartWorkflowExecutionRequest{TaskQueue: &taskqueue.TaskQueue{Name: "a"}}, nil, nil,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return refused }), refused)
	require.NoError(t, p.check(later()), "that was no poll")
}
