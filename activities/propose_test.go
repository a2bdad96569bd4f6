package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

// TestDescribePlan checks what a pull request says about the phases of a plan.
func TestDescribePlan(t *testing.T) {
	t.Parallel()
	request := ProposeRequest{
		Review: escalation.Review{Phase: "2"},
		Phases: []escalation.PlanPhase{
			{Number: "1", Status: escalation.PhaseApproved}, {Number: "2", Status: escalation.PhaseAccepted},
		},
	}
	described := (&Tiers{}).describe("plan-run-ports", request)
	require.Equal(t, "2", described.Phase)
	require.Equal(t, []string{"1: approved", "2: accepted by a person"}, described.Phases)
	request.Review.Phase = escalation.PlanItself
	require.Empty(t, (&Tiers{}).describe("plan-review-ports", request).Phase, "the review is about all of the change")
}
