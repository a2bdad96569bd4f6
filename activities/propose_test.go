package activities

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

// TestDescribePhases checks what a pull request says about the phases of a plan.
func TestDescribePhases(t *testing.T) {
	t.Parallel()
	request := ProposeRequest{
		Review: escalation.Review{Phase: "2"},
		Phases: []escalation.PlanPhase{
			{
				Number: "1", Title: "The port", Status: escalation.PhaseApproved, Turns: 2, Reviews: 2, Checks: "passed", Verdict: "ready",
				CostUSD: 0.84,
			},
			{Number: "2", Status: escalation.PhaseAccepted, Turns: 1, Reviews: 1, Checks: "none", Verdict: "not_ready", CostUSD: 0.5},
			{Number: "2.1", Title: strings.Repeat("x", 500), Status: escalation.PhaseAccepted, Turns: 1, CostUSD: 0.1},
			{Number: "3", Title: "Old ports", Status: escalation.PhaseSkipped},
		},
	}
	described := (&Tiers{}).describe("plan-run-ports", request)
	require.Equal(t, "2", described.Phase)
	require.Equal(t, []string{
		"1 The port: approved, verdict ready, checks passed, $0.84",
		"2: accepted by a person, verdict not ready, no checks, $0.50",
		"2.1 " + strings.Repeat("x", maxPhaseName-5) + "…: accepted by a person, $0.10",
		"3 Old ports: skipped",
	}, described.Phases)
	request.Review.Phase = escalation.PlanItself
	require.Empty(t, (&Tiers{}).describe("plan-review-ports", request).Phase, "the review is about all of the change")
}
