package supervisor

import (
	"context"
	"fmt"
	"slices"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/activities"
)

// pendingReader asks Temporal about activities that have not ended.
type pendingReader struct{ client client.Client }

var _ activities.PendingReader = pendingReader{}

// PendingAgents implements activities.PendingReader.
func (r pendingReader) PendingAgents(ctx context.Context, workflowID, runID string) ([]activities.PendingAgent, error) {
	described, err := r.client.DescribeWorkflowExecution(ctx, workflowID, runID)
	if err != nil {
		return nil, fmt.Errorf("look at the agents of chain %s: %w", workflowID, err)
	}
	return pendingAgents(described.GetPendingActivities()), nil
}

// pendingAgents returns those of the activities that run agents. Those of a workflow that was terminated
// are still listed.
func pendingAgents(pending []*workflowpb.PendingActivityInfo) []activities.PendingAgent {
	var agents []activities.PendingAgent
	for _, one := range pending {
		if !slices.Contains(activities.AgentActivities(), one.GetActivityType().GetName()) {
			continue
		}
		agent := activities.PendingAgent{Begun: one.GetAttempt() > 1 || one.GetLastStartedTime() != nil}
		details := one.GetHeartbeatDetails()
		if details != nil && converter.GetDefaultDataConverter().FromPayloads(details, &agent.Last) != nil {
			agent.Last = activities.TierProgress{}
		}
		agents = append(agents, agent)
	}
	return agents
}
