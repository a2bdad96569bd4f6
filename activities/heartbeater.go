package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/escalation"
)

const (
	// heartbeatRetry is the longest pause after a heartbeat that Temporal has not accepted. It is shorter than the
	// default interval between heartbeats, so that a short outage does not stop the agent.
	heartbeatRetry = time.Second
	// heartbeatCall limits the time for sending one heartbeat, so that a lost heartbeat is noticed early.
	heartbeatCall = 2 * time.Second
)

// Heartbeats sends the heartbeat of an activity to Temporal and returns Temporal's answer. A Temporal client implements
// this interface. The SDK's activity.RecordHeartbeat returns no answer.
type Heartbeats interface {
	RecordActivityHeartbeat(ctx context.Context, taskToken []byte, details ...any) error
}

// errCancelled is the cause for stopping an agent whose chain was cancelled. The tier of that agent is not retried.
var errCancelled = errors.New("the chain was cancelled")

// errHeartbeatLost is the cause for stopping an agent whose heartbeats do not arrive. Either Temporal refuses the
// heartbeats, or it has accepted no heartbeat before the heartbeat deadline. In both cases Temporal can start the tier
// on another worker. Two agents must never work on one conversation.
var errHeartbeatLost = errors.New("heartbeats are not accepted")

// heartbeater sends the heartbeats of an activity until stop is called. It ends the agent's context in two cases:
// Temporal answers that the agent must stop, or Temporal accepts no heartbeat before the deadline.
type heartbeater struct {
	heartbeats Heartbeats
	taskToken  []byte
	// interval is the time between two heartbeats. Heartbeats do not depend on the agent's output, because a working
	// agent sometimes writes nothing for minutes.
	interval time.Duration
	// deadline is the longest time without an accepted heartbeat; 0 for no limit. After this time the agent is stopped.
	// The deadline is half of the heartbeat timeout. The other half is for stopping the agent.
	deadline time.Duration
	end      context.CancelCauseFunc

	// halt ends the method run and aborts a heartbeat that is being sent.
	halt context.CancelFunc
	idle sync.WaitGroup

	mu   sync.Mutex
	last TierProgress
}

// startHeartbeater sends a first heartbeat with progress, and further heartbeats at the given interval. The returned
// context is the agent's context, which ends when the agent must stop.
func startHeartbeater(
	ctx context.Context, heartbeats Heartbeats, interval time.Duration, progress TierProgress,
) (context.Context, *heartbeater) {
	info := activity.GetInfo(ctx)
	agent, end := context.WithCancelCause(ctx)
	h := &heartbeater{
		heartbeats: heartbeats, taskToken: info.TaskToken, interval: interval, deadline: info.HeartbeatTimeout / 2,
		end: end, last: progress,
	}
	h.start(ctx)
	return agent, h
}

// start starts the method run. The heartbeats continue after ctx ends, because an agent that is being stopped is still
// alive.
func (h *heartbeater) start(ctx context.Context) {
	sending, halt := context.WithCancel(context.WithoutCancel(ctx))
	h.halt = halt
	h.idle.Go(func() { h.run(sending) })
}

// run sends heartbeats until stop is called. Each pause begins after Temporal's answer, so that a late answer does not
// bring two heartbeats close together.
func (h *heartbeater) run(ctx context.Context) {
	accepted := time.Now()
	for {
		sent, pause := time.Now(), h.interval
		switch err := h.send(ctx); {
		case ctx.Err() != nil:
			return
		case err == nil:
			accepted = sent
		case final(err) != nil:
			h.end(final(err))
		default:
			pause = min(h.interval, heartbeatRetry)
			if h.deadline > 0 && time.Since(accepted) > h.deadline {
				h.end(fmt.Errorf("%w for %s: %w", errHeartbeatLost, time.Since(accepted).Round(time.Second), err))
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// send sends one heartbeat with the latest progress and returns Temporal's answer.
func (h *heartbeater) send(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeatCall)
	defer cancel()
	return h.heartbeats.RecordActivityHeartbeat(ctx, h.taskToken, h.progress())
}

// final returns the cause for stopping the agent at once, according to Temporal's answer to a heartbeat. If Temporal
// can still accept a later heartbeat, final returns nil.
func final(answer error) error {
	if temporal.IsCanceledError(answer) {
		return errCancelled
	}
	_, unknown := errors.AsType[*serviceerror.NotFound](answer)
	if unknown || errors.Is(answer, activity.ErrActivityPaused) || errors.Is(answer, activity.ErrActivityReset) {
		return fmt.Errorf("%w: %w", errHeartbeatLost, answer)
	}
	return nil
}

// observe updates the progress of the running invocation.
func (h *heartbeater) observe(now AgentProgress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = h.last.with(now)
}

// add adds the spending of an invocation that has ended. Call add before the next invocation starts.
func (h *heartbeater) add(ended escalation.Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last.Spent, h.last.Now, h.last.InFlight = h.last.Spent.Then(ended), AgentProgress{}, nil
}

// settle sets the total spending of all attempts, and the hosts on which they may have committed something. Call settle
// after the last invocation has ended.
func (h *heartbeater) settle(all AgentReport, failures int, hosts []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last.Spent, h.last.Now, h.last.InFlight = all.Report, AgentProgress{}, all.InFlight
	h.last.Failures, h.last.Hosts = failures, hosts
}

// progress returns the latest progress.
func (h *heartbeater) progress() TierProgress {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// stop stops the heartbeats and aborts a heartbeat that is being sent. If report is true, stop then sends a last
// heartbeat, which tells the next attempt the spending. If this last heartbeat fails, the next attempt uses an older
// figure.
func (h *heartbeater) stop(ctx context.Context, report bool) {
	h.halt()
	h.idle.Wait()
	if report {
		_ = h.send(context.WithoutCancel(ctx))
	}
	h.end(nil)
}
