package escalation

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDescribePhase(t *testing.T) {
	t.Parallel()
	for want, phase := range map[string]PlanPhase{
		"1 The port: approved, verdict ready, checks passed, $0.84": {
			Number: "1", Title: "The port", Status: PhaseApproved, Turns: 2, Reviews: 2, Checks: "passed", Verdict: "ready", Cost: Cost{CostUSD: 0.84},
		},
		"2: accepted by a person, verdict not ready, no checks, $0.50": {
			Number: "2", Status: PhaseAccepted, Turns: 1, Reviews: 1, Checks: "none", Verdict: "not_ready", Cost: Cost{CostUSD: 0.5},
		},
		"2.1 " + strings.Repeat("x", maxPhaseName-5) + "…: accepted by a person, $0.10": {
			Number: "2.1", Title: strings.Repeat("x", 500), Status: PhaseAccepted, Turns: 1, Cost: Cost{CostUSD: 0.1},
		},
		"3 Old ports: skipped": {Number: "3", Title: "Old ports", Status: PhaseSkipped},
		"the plan: waiting":    {Number: PlanItself, Status: PhaseWaiting},
	} {
		require.Equal(t, want, phase.Describe())
	}
}
