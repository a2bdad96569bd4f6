package operations

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

func TestSessionCost(t *testing.T) {
	t.Parallel()
	estimated := escalation.Report{Cost: escalation.Cost{CostUSD: 0.25, CostEstimated: true}, Attempts: 1}
	for want, session := range map[string]escalation.Session{
		"$0.25":         {BudgetUSD: 2, Report: escalation.Report{Cost: escalation.Cost{CostUSD: 0.25}}},
		"about $0.25":   {BudgetUSD: 2, Report: estimated},
		"at most $2.00": {BudgetUSD: 2, Report: escalation.Report{Cost: escalation.Cost{CostEstimated: true}}},
		"unknown":       {Report: escalation.Report{Cost: escalation.Cost{CostEstimated: true}}},
	} {
		require.Equal(t, want, SessionCost(&session))
	}
}

// TestContextNamesAMissingSandbox checks that the context shows a missing sandbox, but only if the session should have
// had one.
func TestContextNamesAMissingSandbox(t *testing.T) {
	t.Parallel()
	for sandbox, named := range map[string]bool{
		"guard only: none: this kernel has no Landlock, which came with Linux 5.13": true, "kernel only: landlock (ABI 7)": false,
		"guard only: off": false, "user only: none at tier 3, as user agent": false, "": false,
	} {
		session := escalation.Session{Report: escalation.Report{Sandbox: sandbox}}
		require.Equal(t, named, strings.Contains(SessionContext(&session), ", no sandbox"), sandbox)
	}
}

// TestContextNamesTheBranchOfAWorktree checks that the context shows where a session has left its work.
func TestContextNamesTheBranchOfAWorktree(t *testing.T) {
	t.Parallel()
	tree := &escalation.Worktree{Branch: "claudeops/chain-1"}
	session := escalation.Session{Report: escalation.Report{Worktree: tree}}
	require.NotContains(t, SessionContext(&session), "claudeops/")
	tree.Kept = true
	require.Contains(t, SessionContext(&session), ", work left on claudeops/chain-1")
}

// TestGatePlace checks how a gate is named.
func TestGatePlace(t *testing.T) {
	t.Parallel()
	require.Equal(t, "the plan", GatePlace(escalation.Gate{Phase: escalation.PlanItself}))
	require.Equal(t, "tier 2", GatePlace(escalation.Gate{Tier: escalation.TierSafeRepair}))
}
