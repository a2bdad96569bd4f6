package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/escalation"
)

// heartbeatInterval is how often a running tier tells that it is alive. It is
// independent of the agent's output: an agent that thinks is not a worker that died.
const heartbeatInterval = time.Second

// TierProgress is the heartbeat of a running tier.
type TierProgress struct {
	// Spent is what earlier attempts and turns that have ended came to.
	Spent escalation.Report `json:"spent"`
	// Now is how far the invocation that runs has come.
	Now AgentProgress `json:"now"`
	// InFlight is the tool call that had no result yet; its Name is empty if there was none.
	InFlight ToolCall `json:"in_flight"`
}

// pastAttempts returns what the heartbeat of the attempt before left behind, with what
// its unfinished invocation had spent counted as an estimate.
func pastAttempts(ctx context.Context) TierProgress {
	var past TierProgress
	if !activity.HasHeartbeatDetails(ctx) || activity.GetHeartbeatDetails(ctx, &past) != nil {
		return TierProgress{}
	}
	return past.ended()
}

// SpentBefore returns what the attempts of a tier have spent that failed with err.
func SpentBefore(err error) escalation.Report {
	var report escalation.Report
	var application *temporal.ApplicationError
	if errors.As(err, &application) && application.HasDetails() && application.Details(&report) == nil {
		return report
	}
	var past TierProgress
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) && timeout.HasLastHeartbeatDetails() && timeout.LastHeartbeatDetails(&past) == nil {
		return past.ended().Spent
	}
	return escalation.Report{}
}

// ended turns the progress of an invocation that was cut off into spending.
func (p TierProgress) ended() TierProgress {
	cut := escalation.Report{Turns: p.Now.Turns, Tokens: p.Now.Tokens, CostUSD: p.Now.CostUSD}
	cut.CostEstimated = p.Now.CostUSD > 0
	return TierProgress{Spent: p.Spent.Then(cut), InFlight: p.InFlight}
}

// pulse sends heartbeats on its own clock until it is stopped.
type pulse struct {
	past TierProgress
	done chan struct{}
	idle sync.WaitGroup

	mu   sync.Mutex
	last TierProgress
}

func startPulse(ctx context.Context, past TierProgress) *pulse {
	p := &pulse{past: past, last: past, done: make(chan struct{})}
	p.idle.Go(func() { p.beat(ctx) })
	return p
}

func (p *pulse) beat(ctx context.Context) {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for {
		activity.RecordHeartbeat(ctx, p.progress())
		select {
		case <-ticker.C:
		case <-p.done:
			activity.RecordHeartbeat(ctx, p.progress())
			return
		}
	}
}

// observe takes in how far the invocation has come.
func (p *pulse) observe(now AgentProgress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last.Now = now
	p.last.InFlight = ToolCall{}
	for _, call := range now.Tools {
		if call.State == ToolRunning {
			p.last.InFlight = call
		}
	}
}

// settle replaces the progress, when an invocation has ended and its spending is known.
func (p *pulse) settle(progress TierProgress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = progress
}

func (p *pulse) progress() TierProgress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// stop sends the last heartbeat and ends the pulse.
func (p *pulse) stop() {
	close(p.done)
	p.idle.Wait()
}
