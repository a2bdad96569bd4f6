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
	// heartbeatInterval is how often a running tier tells that it is alive. It is
	// independent of the agent's output: an agent that thinks is not a worker that died.
	heartbeatInterval = time.Second
	// heartbeatCall bounds one call, so that a network that swallows it is noticed in time.
	heartbeatCall = 2 * time.Second
)

// Heartbeats tells Temporal that an activity is alive, and returns its answer. A Temporal
// client is one. The activity's own RecordHeartbeat would not do: it keeps silent about
// heartbeats that are not accepted.
type Heartbeats interface {
	RecordActivityHeartbeat(ctx context.Context, taskToken []byte, details ...any) error
}

// errCancelled ends an agent whose chain was cancelled. It has ended for good.
var errCancelled = errors.New("the chain was cancelled")

// errFenced ends an agent that Temporal no longer counts on, or may soon start again
// elsewhere: two agents must never work on one conversation.
var errFenced = errors.New("heartbeats are not accepted")

// pulse sends heartbeats on its own clock until it is stopped, and ends a context when
// Temporal's answer, or its silence, says that the agent must go.
type pulse struct {
	heartbeats Heartbeats
	taskToken  []byte
	// fence is the time without an accepted heartbeat after which the agent is ended. It
	// is half the heartbeat timeout: the rest is for stopping the agent.
	fence time.Duration
	end   context.CancelCauseFunc

	done chan struct{}
	idle sync.WaitGroup

	mu   sync.Mutex
	last TierProgress
}

// startPulse sends the first heartbeat's worth of progress and goes on by itself. The
// context that it returns is for the agent.
func startPulse(ctx context.Context, heartbeats Heartbeats, progress TierProgress) (context.Context, *pulse) {
	info := activity.GetInfo(ctx)
	agent, end := context.WithCancelCause(ctx)
	p := &pulse{
		heartbeats: heartbeats, taskToken: info.TaskToken, fence: info.HeartbeatTimeout / 2,
		end: end, done: make(chan struct{}), last: progress,
	}
	// The heartbeats outlive ctx: an agent that is being stopped is still alive.
	p.idle.Go(func() { p.beat(context.WithoutCancel(ctx)) })
	return agent, p
}

// beat sends heartbeats until the pulse is stopped.
func (p *pulse) beat(ctx context.Context) {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	accepted := time.Now()
	for {
		sent := time.Now()
		switch err := p.send(ctx); {
		case err == nil:
			accepted = sent
		case final(err) != nil:
			p.end(final(err))
		case p.fence > 0 && time.Since(accepted) > p.fence:
			p.end(fmt.Errorf("%w for %s: %w", errFenced, time.Since(accepted).Round(time.Second), err))
		}
		select {
		case <-ticker.C:
		case <-p.done:
			return
		}
	}
}

// send sends one heartbeat with the latest progress and returns Temporal's answer.
func (p *pulse) send(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeatCall)
	defer cancel()
	return p.heartbeats.RecordActivityHeartbeat(ctx, p.taskToken, p.progress())
}

// final returns why an answer ends the agent at once; nil if another heartbeat may be accepted.
func final(answer error) error {
	if temporal.IsCanceledError(answer) {
		return errCancelled
	}
	_, unknown := errors.AsType[*serviceerror.NotFound](answer)
	if unknown || errors.Is(answer, activity.ErrActivityPaused) || errors.Is(answer, activity.ErrActivityReset) {
		return fmt.Errorf("%w: %w", errFenced, answer)
	}
	return nil
}

// observe takes in how far the invocation has come.
func (p *pulse) observe(now AgentProgress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = p.last.with(now)
}

// add takes in what an invocation that has ended came to, before another one begins.
func (p *pulse) add(ended escalation.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last.Spent, p.last.Now, p.last.InFlight = p.last.Spent.Then(ended), AgentProgress{}, nil
}

// settle takes in what everything came to, once no invocation runs any more.
func (p *pulse) settle(all AgentReport, failures int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last.Spent, p.last.Now, p.last.InFlight = all.Report, AgentProgress{}, all.InFlight
	p.last.Failures = failures
}

func (p *pulse) progress() TierProgress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// stop ends the pulse. With report it first tells Temporal what the next attempt has to
// know; that this fails is no more than a worse estimate.
func (p *pulse) stop(ctx context.Context, report bool) {
	close(p.done)
	p.idle.Wait()
	if report {
		_ = p.send(context.WithoutCancel(ctx))
	}
	p.end(nil)
}
