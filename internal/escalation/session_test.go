package escalation_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

func TestReportThen(t *testing.T) {
	t.Parallel()
	first := escalation.Report{
		Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.5, CostEstimated: true}, ReportedTotalUSD: 0.5,
		Tokens: escalation.TokenUsage{Input: 1, Output: 2, CacheRead: 3, CacheCreation: 4}, ContextTokens: 10,
		ContextWindow: 200_000, Turns: 3, DurationMS: 100, ReportedSessionID: "id", CLIVersion: "2.1.332", Attempts: 1, Host: "a",
		Containment: "subreaper", Survivors: 1,
	}
	second := escalation.Report{
		Status: escalation.SessionTimedOut, Cost: escalation.Cost{CostUSD: 0.25}, Error: "too late", ContextTokens: 20,
		Tokens: escalation.TokenUsage{Input: 10, Output: 20, CacheRead: 30, CacheCreation: 40}, Turns: 1, DurationMS: 50, Attempts: 2,
		Survivors: 2,
	}
	require.Equal(t, escalation.Report{
		Status: escalation.SessionTimedOut, Cost: escalation.Cost{CostUSD: 0.75, CostEstimated: true}, ReportedTotalUSD: 0.5,
		Tokens: escalation.TokenUsage{Input: 11, Output: 22, CacheRead: 33, CacheCreation: 44}, ContextTokens: 20,
		ContextWindow: 200_000, Turns: 4, DurationMS: 150, ReportedSessionID: "id", CLIVersion: "2.1.332", Attempts: 2, Host: "a",
		Containment: "subreaper", Survivors: 3,
		Error: "too late",
	}, first.Then(second))
	require.Equal(t, first, escalation.Report{}.Then(first), "nothing before changes nothing")
}

func TestPolicyForDryRun(t *testing.T) {
	t.Parallel()
	policy := escalation.Policy{Tiers: []escalation.TierPolicy{
		{Model: "haiku", Tools: []string{"Read"}, AllowedTools: []string{"Read(./**)"}},
		{Model: "sonnet", Tools: []string{"Bash"}, AllowedTools: []string{"Bash(docker restart:*)"}},
		{Model: "opus", Tools: []string{"Bash"}, AllowedTools: []string{"Bash(helm:*)"}},
	}}
	require.Equal(t, []string{"Bash(docker restart:*)"}, policy.For(2).AllowedTools)
	require.Equal(t, policy.For(2), policy.OfSession(2).For(2))

	policy.DryRun = true
	for _, tier := range escalation.Tiers() {
		got := policy.For(tier)
		require.Equal(t, got, policy.OfSession(tier).For(tier))
		require.Equal(t, policy.Tiers[tier-1].Model, got.Model)
		require.Equal(t, []string{"Read"}, got.Tools)
		require.Equal(t, []string{"Read(./**)"}, got.AllowedTools)
	}
}

func TestDurationIsText(t *testing.T) {
	t.Parallel()
	encoded, err := json.Marshal(escalation.TierPolicy{Timeout: escalation.Duration(90 * time.Minute)})
	require.NoError(t, err)
	require.Contains(t, string(encoded), `"timeout":"1h30m0s"`)

	var decoded escalation.TierPolicy
	require.NoError(t, json.Unmarshal(encoded, &decoded))
	require.Equal(t, 90*time.Minute, decoded.Timeout.Std())

	require.ErrorContains(t, json.Unmarshal([]byte(`{"timeout":"soon"}`), &decoded), `duration "soon"`)
}

func TestChain(t *testing.T) {
	t.Parallel()
	var chain escalation.Chain
	require.Nil(t, chain.Last())
	require.Zero(t, chain.Tier())

	chain.Sessions = []escalation.Session{
		{Tier: 1, Report: escalation.Report{Cost: escalation.Cost{CostUSD: 0.25}}}, {Tier: 3, Report: escalation.Report{Cost: escalation.Cost{CostUSD: 2}}},
	}
	require.Equal(t, escalation.TierFullRepair, chain.Tier())
	require.InDelta(t, 2.25, escalation.TotalCostUSD(chain.Sessions), 1e-12)
}

// TestAnInterruptedContinuationStaysOne checks that the death of a process does not hide that a person chose to
// continue.
func TestAnInterruptedContinuationStaysOne(t *testing.T) {
	t.Parallel()
	for reason, want := range map[escalation.ContinuityReason]escalation.ContinuityReason{
		escalation.ReasonContinued: escalation.ReasonContinued, escalation.ReasonCorrection: escalation.ReasonInterrupted,
		escalation.ReasonIndependent: escalation.ReasonInterrupted,
	} {
		session := escalation.Session{Continuity: escalation.ContinuityResume, ContinuityReason: reason}
		session.SetReport(escalation.Report{Interrupted: true})
		require.Equal(t, []any{want, escalation.ContinuityResume}, []any{session.ContinuityReason, session.Continuity})
		require.Equal(t, reason == escalation.ReasonContinued, session.Continued())
	}
}
