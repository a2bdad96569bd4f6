package activities

import (
	"context"
	"errors"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/escalation"
)

// TierProgress is the heartbeat of a running tier.
type TierProgress struct {
	SessionID string `json:"session_id"`
	// Host is the name of the machine on which the agent runs. WorkerPID is the process id of the agent's worker on
	// that machine.
	Host      string `json:"host"`
	WorkerPID int    `json:"worker_pid,omitempty"`
	// Attempt is the number of the current attempt at the tier, from 1.
	Attempt int `json:"attempt,omitempty"`
	// Spent is the spending of all invocations that have ended, in this attempt and in earlier attempts.
	Spent escalation.Report `json:"spent"`
	// Now is the progress of the running invocation.
	Now AgentProgress `json:"now"`
	// InFlight holds the tool calls without a result.
	InFlight []ToolCall `json:"in_flight,omitempty"`
	// Hosts lists the hosts on which attempts may have committed something.
	Hosts []string `json:"hosts,omitempty"`
	// Failures counts the failed attempts. An attempt that ended because its worker stopped or died does not count.
	Failures int `json:"failures,omitempty"`
}

// pastAttempts returns the progress in the last heartbeat of the previous attempt. If an invocation was running at that
// heartbeat, its spending is an estimate.
func pastAttempts(ctx context.Context) TierProgress {
	var past TierProgress
	if !activity.HasHeartbeatDetails(ctx) || activity.GetHeartbeatDetails(ctx, &past) != nil {
		return TierProgress{}
	}
	return past.ended()
}

// SpentBefore returns the spending of all attempts at a tier that failed with err. If a worker has started the tier but
// no heartbeat has arrived, the cost is unknown (see escalation.Session.CostUnknown).
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
	return escalation.Report{Cost: escalation.Cost{CostEstimated: taken}}
}

// Total returns the spending of all attempts so far. The spending of the running attempt is an estimate.
func (p TierProgress) Total() escalation.Report { return p.ended().Spent }

// ended adds the progress of an unfinished invocation to Spent, as an estimate.
func (p TierProgress) ended() TierProgress {
	cut := escalation.Report{Turns: p.Now.Turns, Tokens: p.Now.Tokens, Cost: escalation.Cost{CostUSD: p.Now.CostUSD}}
	cut.CostEstimated = p.Now.CostUSD > 0
	cut.Attempts, cut.Host = p.Attempt, p.Host
	if p.Now.Turns > 0 { // its worker has died
		p.Hosts = withHost(p.Hosts, p.Host)
	}
	p.Spent, p.Now = p.Spent.Then(cut), AgentProgress{}
	return p
}

// with updates the progress of the running invocation. Until the model of that invocation has answered, InFlight keeps
// the tool calls of the previous invocation, because the effect of these calls is still unknown.
func (p TierProgress) with(now AgentProgress) TierProgress {
	p.Now = now
	if now.Turns > 0 {
		p.InFlight = now.InFlight
	}
	return p
}

// withHost adds a host to a list of hosts.
func withHost(hosts []string, host string) []string {
	if host == "" || slices.Contains(hosts, host) {
		return hosts
	}
	return append(slices.Clip(hosts), host)
}

// elsewhere returns the hosts of earlier attempts that may have committed something, except for the one of the worktree
// in which the latest attempt has worked. That host may have got another name, as a new container has.
func (p TierProgress) elsewhere(host string, worked *escalation.Worktree) []string {
	if worked.Again && len(p.Hosts) == 1 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Hosts), func(one string) bool { return one == host })
}
