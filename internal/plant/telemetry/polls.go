package telemetry

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	taskqueue "go.temporal.io/api/taskqueue/v1"
	"google.golang.org/grpc"
)

// pollPatience limits how long polls of a task queue can fail before the worker counts as not ready. Single failures
// are normal, for example while the server restarts.
const pollPatience = 10 * time.Second

// polls records whether Temporal accepts a worker's polls for tasks. A poll that returns no task counts as a success,
// too.
type polls struct {
	mutex sync.Mutex
	// failing maps a task queue to the time of the first failure since the queue's last success.
	failing map[string]time.Time
}

// intercept is a grpc.UnaryClientInterceptor.
func (p *polls) intercept( //nolint:revive // gRPC's signature
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	err := call(ctx, method, request, reply, conn, options...)
	queue, isPoll := polledQueue(method, request)
	if isPoll && ctx.Err() == nil { // ctx ends when the worker stops, or when no task came in time
		p.note(queue, err, time.Now())
	}
	return err
}

// polledQueue returns the task queue that a request polls.
func polledQueue(method string, request any) (queue string, isPoll bool) {
	_, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if name != "PollWorkflowTaskQueue" && name != "PollActivityTaskQueue" {
		return "", false
	}
	polling, ok := request.(interface{ GetTaskQueue() *taskqueue.TaskQueue })
	if !ok {
		return "", false
	}
	return name + " " + polling.GetTaskQueue().GetName(), true
}

// note records the result of a poll.
func (p *polls) note(queue string, err error, now time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err == nil {
		delete(p.failing, queue)
		return
	}
	if p.failing == nil {
		p.failing = map[string]time.Time{}
	}
	if p.failing[queue].IsZero() {
		p.failing[queue] = now
	}
}

// check returns an error if the polls of a task queue have failed for longer than pollPatience.
func (p *polls) check(now time.Time) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, since := range p.failing {
		if now.Sub(since) > pollPatience {
			return fmt.Errorf("polls for tasks have failed for %s", now.Sub(since).Round(time.Second))
		}
	}
	return nil
}
