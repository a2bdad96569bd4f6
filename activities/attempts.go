package activities

import (
	"context"
	"slices"

	"go.temporal.io/sdk/activity"

	"github.com/claudeops/claudeops/internal/escalation"
)

// AgentActivities returns the activity types that run agents.
func AgentActivities() []string {
	return []string{"RunTier", "WriteHandoff", "RunTalk", "RunReview", "RunAuthor"}
}

// PendingAgent is an activity that runs an agent and has not ended.
type PendingAgent struct {
	// Begun reports whether a worker has started the activity at least once.
	Begun bool
	// Last is the last heartbeat of the activity; zero if no heartbeat has arrived.
	Last TierProgress
}

// PendingReader reads the activities that have not ended.
type PendingReader interface {
	// PendingAgents returns the activities that run agents of a chain and have not ended.
	PendingAgents(ctx context.Context, workflowID, runID string) ([]PendingAgent, error)
}

// Attempts looks up facts about the attempts at a session that is still running.
type Attempts struct {
	Reader PendingReader
}

// SpentSoFarInput names a session of the calling chain.
type SpentSoFarInput struct {
	SessionID string `json:"session_id"`
}

// SpentSoFar returns an estimate of the spending of all attempts at a session so far. If a worker has started the
// session but no heartbeat has arrived, the cost is unknown (see escalation.Session.CostUnknown).
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
	return escalation.Report{Cost: escalation.Cost{CostEstimated: begun}}, nil
}
