package reconcile

import (
	"context"
	"fmt"
	"slices"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/activities"
)

// PendingReader reads the last heartbeats of running agents from Temporal.
type PendingReader struct {
	Temporal Describer
	// Converter decodes heartbeats.
	Converter converter.DataConverter
}

var _ activities.PendingReader = PendingReader{}

// PendingAgents implements activities.PendingReader.
func (r PendingReader) PendingAgents(ctx context.Context, workflowID, runID string) ([]activities.PendingAgent, error) {
	described, err := r.Temporal.DescribeWorkflowExecution(ctx, workflowID, runID)
	if err != nil {
		return nil, fmt.Errorf("look at the agents of chain %s: %w", workflowID, err)
	}
	return pendingAgents(described.GetPendingActivities(), r.Converter), nil
}

// pendingAgents returns the pending activities that run agents. Temporal still lists the pending activities of a
// workflow after the workflow was terminated.
func pendingAgents(pending []*workflowpb.PendingActivityInfo, data converter.DataConverter) []activities.PendingAgent {
	var agents []activities.PendingAgent
	for _, one := range pending {
		if !slices.Contains(activities.AgentActivities(), one.GetActivityType().GetName()) {
			continue
		}
		agent := activities.PendingAgent{Begun: one.GetAttempt() > 1 || one.GetLastStartedTime() != nil}
		details := one.GetHeartbeatDetails()
		if details != nil && data.FromPayloads(details, &agent.Last) != nil {
			agent.Last = activities.TierProgress{}
		}
		agents = append(agents, agent)
	}
	return agents
}
