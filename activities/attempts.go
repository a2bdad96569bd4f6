package activities

import (
	"context"
	"slices"

	"go.temporal.io/sdk/activity"

	"github.com/claudeops/claudeops/internal/escalation"
)

// AgentActivities are the names for Temporal of the activities that run agents.
func AgentActivities() []string { return []string{"RunTier", "WriteHandoff"} }

// PendingAgent is the activity of an agent that has not ended.
type PendingAgent struct {
	// Begun says that a worker has taken it at least once.
	Begun bool
	// Last is its last heartbeat; zero if there is none.
	Last TierProgress
}

// PendingReader knows what has not ended.
type PendingReader interface {
	// PendingAgents returns the activities of a chain's agents that have not ended.
	PendingAgents(ctx context.Context, workflowID, runID string) ([]PendingAgent, error)
}

// Attempts answers for the attempts at a session while they go on.
type Attempts struct {
	Reader PendingReader
}

// SpentSoFarInput is a session of the chain that asks.
type SpentSoFarInput struct {
	SessionID string `json:"session_id"`
}

// SpentSoFar returns what the attempts at a session have spent until now, as an estimate. Where a
// worker has taken the session and was never heard of, that is unknown (see
// escalation.Session.CostUnknown).
func (a *Attempts) SpentSoFar(ctx context.Context, input SpentSoFarInput) (escalation.Report, error) {
	chain := activity.GetInfo(ctx).WorkflowExecution
	agents, err := a.Reader.PendingAgents(ctx, chain.ID, chain.RunID)
	if err != nil {
		return escalation.Report{}, err
	}
	for _, agent := range agents {
		if agent.Last.SessionID == input.SessionID {
			return agent.Last.Total(), nil
		}
	}
	begun := slices.ContainsFunc(agents, func(agent PendingAgent) bool { return agent.Begun })
	return escalation.Report{CostEstimated: begun}, nil
}
