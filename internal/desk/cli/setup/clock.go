package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/claudeops/claudeops/internal/desk/operations"
)

const (
	// maxClockSkew is the largest accepted difference between this machine's clock and Temporal's clock. Some
	// durations, such as cooldowns, are computed from both clocks. A larger difference would make these durations
	// wrong.
	maxClockSkew = 5 * time.Second
	// clockQueue is a task queue that no other program polls.
	clockQueue = "claudeops-doctor"
	// clockPoll is the duration of the poll in serverTime. Temporal refuses much shorter polls.
	clockPoll = 5 * time.Second
	// clockLook is the time between two checks whether Temporal has recorded the poll.
	clockLook = 50 * time.Millisecond
)

// checkClock compares this machine's clock with Temporal's.
func checkClock(ctx context.Context, c operations.Connection) finding {
	const check = "clock"
	before := time.Now()
	theirs, err := serverTime(ctx, c)
	if err != nil {
		return failed(check, fmt.Errorf("ask Temporal for its time: %w", err))
	}
	// Temporal read its clock at some time between before and now. So only a time outside of this range means that the
	// clocks differ.
	skew := max(before.Sub(theirs), time.Until(theirs), 0)
	if skew > maxClockSkew {
		return failed(check, fmt.Errorf("this machine and Temporal disagree by %s; synchronize both with NTP",
			skew.Round(time.Second)))
	}
	return passed(check, "agrees with Temporal's")
}

// serverTime returns the current time of Temporal's clock. No API call returns this time, but the server records when a
// task queue was last polled. So serverTime polls a task queue and reads the recorded time.
func serverTime(ctx context.Context, c operations.Connection) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, clockPoll)
	defer cancel()
	identity := fmt.Sprintf("doctor-%d", time.Now().UnixNano())
	queue := &taskqueuepb.TaskQueue{Name: clockQueue}
	polled := make(chan error, 1)
	go func() {
		_, err := c.WorkflowService().PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{
			Namespace: c.Namespace, TaskQueue: queue, Identity: identity,
		})
		polled <- err
	}()
	ticker := time.NewTicker(clockLook)
	defer ticker.Stop()
	for {
		select {
		case err := <-polled:
			return time.Time{}, errors.Join(errors.New("the poll that was to be noticed has ended"), err)
		case <-ticker.C:
		}
		described, err := c.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: c.Namespace, TaskQueue: queue, TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY,
		})
		if err != nil {
			return time.Time{}, err
		}
		for _, poller := range described.GetPollers() {
			if poller.GetIdentity() == identity {
				return poller.GetLastAccessTime().AsTime(), nil
			}
		}
	}
}
