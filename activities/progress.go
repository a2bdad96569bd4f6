package activities

import (
	"context"
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/escalation"
)

// TierProgress is the heartbeat of a running tier.
type TierProgress struct {
	SessionID string `json:"session_id"`
	// Host names the machine on which the agent runs, and WorkerPID the process there that runs it.
	Host      string `json:"host"`
	WorkerPID int    `json:"worker_pid,omitempty"`
	// Attempt counts the attempts at the tier, this one included.
	Attempt int `json:"attempt,omitempty"`
	// Spent is what earlier attempts and invocations that have ended came to.
	Spent escalation.Report `json:"spent"`
	// Now is how far the invocation that runs has come.
	Now AgentProgress `json:"now"`
	// InFlight are the tool calls that had no result yet.
	InFlight []ToolCall `json:"in_flight,omitempty"`
	// Failures counts the attempts that could not be judged, those left out that ended with
	// their worker.
	Failures int `json:"failures,omitempty"`
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

// SpentBefore returns what the attempts of a tier have spent that failed with err. Where a worker took
// the tier and was never heard of, that is unknown (see escalation.Session.CostUnknown).
func SpentBefore(err error) escalation.Report {
	var report escalation.Report
	application, ok := errors.AsType[*temporal.ApplicationError](err)
	if ok && application.HasDetails() && application.Details(&report) == nil {
		return report
	}
	var past TierProgress
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	if ok && timeout.HasLastHeartbeatDetails() && timeout.LastHeartbeatDetails(&past) == nil {
		return past.Total()
	}
	taken := ok && timeout.TimeoutType() != enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
	return escalation.Report{CostEstimated: taken}
}

// Total is what all attempts have spent so far, the one that runs counted as an estimate.
func (p TierProgress) Total() escalation.Report { return p.ended().Spent }

// ended turns the progress of an invocation that was cut off into spending.
func (p TierProgress) ended() TierProgress {
	cut := escalation.Report{Turns: p.Now.Turns, Tokens: p.Now.Tokens, CostUSD: p.Now.CostUSD}
	cut.CostEstimated = p.Now.CostUSD > 0
	cut.Attempts, cut.Host = p.Attempt, p.Host
	p.Spent, p.Now = p.Spent.Then(cut), AgentProgress{}
	return p
}

// with takes in how far the invocation that runs has come. As long as its model has said nothing, the
// calls of the one before are those whose effect is unknown.
func (p TierProgress) with(now AgentProgress) TierProgress {
	p.Now = now
	if now.Turns > 0 {
		p.InFlight = now.InFlight
	}
	return p
}
