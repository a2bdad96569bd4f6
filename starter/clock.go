package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
)

const (
	// maxClockSkew is the difference to Temporal's clock above which durations that mix the
	// two clocks, cooldowns among them, begin to surprise.
	maxClockSkew = 5 * time.Second
	// clockQueue is a task queue that nobody else polls.
	clockQueue = "claudeops-doctor"
	// clockPoll is how long it is polled. Temporal refuses polls that are much shorter.
	clockPoll = 5 * time.Second
	// clockLook is how often Temporal is asked whether it has noticed the poll.
	clockLook = 50 * time.Millisecond
)

// checkClock compares this machine's clock with Temporal's.
func checkClock(ctx context.Context, c connection) finding {
	const check = "clock"
	before := time.Now()
	theirs, err := serverTime(ctx, c)
	if err != nil {
		return failed(check, fmt.Errorf("ask Temporal for its time: %w", err))
	}
	// Theirs was read between before and now, so only what lies outside of that is skew.
	skew := max(before.Sub(theirs), time.Until(theirs), 0)
	if skew > maxClockSkew {
		return failed(check, fmt.Errorf("this machine and Temporal disagree by %s; synchronize both with NTP", skew.Round(time.Second)))
	}
	return passed(check, "agrees with Temporal's")
}

// serverTime returns Temporal's time. There is no call that asks for it, but the server
// notes when a task queue was last polled: so one is polled, and that note is read.
func serverTime(ctx context.Context, c connection) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, clockPoll)
	defer cancel()
	identity := fmt.Sprintf("doctor-%d", time.Now().UnixNano())
	queue := &taskqueuepb.TaskQueue{Name: clockQueue}
	polled := make(chan error, 1)
	go func() {
		_, err := c.WorkflowService().PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{
			Namespace: c.namespace, TaskQueue: queue, Identity: identity,
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
			Namespace: c.namespace, TaskQueue: queue, TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY,
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
