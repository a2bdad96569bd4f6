package systemtest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/encryption"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestStartSettlesAbandonedRecords starts a worker on records with three open sessions: one of a terminated chain,
// one of an unknown chain, and one of a chain that still runs.
func TestStartSettlesAbandonedRecords(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "ended before its work was done"}, claudesim.Conclude(allWell())),
		claudesim.Always(claudesim.Bash("sleep 300"))))
	environ := environment(t, claude, "CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_DRAIN_TIMEOUT=1s")
	first := startSite(t, temporalServer, environ)
	terminated, running := first.startAs("terminated", nil), first.startAs("running", nil)
	for _, chainID := range []string{"terminated", "running"} {
		require.Eventually(t, func() bool { return len(first.heartbeat(chainID).InFlight) > 0 },
			testTimeout, 50*time.Millisecond, "%s must be in its tool call", chainID)
	}
	require.Eventually(t, func() bool { return first.heartbeat("terminated").Total().CostUSD > 0 },
		testTimeout, 50*time.Millisecond, "no heartbeat tells of its cost")
	require.NoError(t, first.stop())
	opened := time.Now()
	_, err := first.records().OpenSession(t.Context(), escalation.Session{
		ChainID: "unknown", SessionID: "0d9c7e0f-8b8e-4d53-9f0e-4f2b7c1e7a11", StartedAt: opened, Tier: 2,
	}, escalation.AdmissionRequest{Services: []string{"jellyfin"}}, first.cfg.Policy())
	require.NoError(t, err)
	require.NoError(t, temporalServer.TerminateWorkflow(t.Context(), terminated.GetID(), terminated.GetRunID(), "by the test"))

	second := startSite(t, temporalServer, environ)
	chain, err := second.finish(running)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeHealthy, chain.Outcome)
	for chainID, want := range map[string]string{
		"terminated": "its chain ended without closing it: terminated", "unknown": "its chain is unknown to Temporal",
	} {
		sessions, err := second.records().Chain(t.Context(), chainID)
		require.NoError(t, err)
		require.Len(t, sessions, 1)
		require.Equal(t, escalation.SessionFailed, sessions[0].Status)
		require.Equal(t, want, sessions[0].Error)
		require.True(t, sessions[0].CostEstimated)
		require.Equal(t, chainID == "terminated", sessions[0].CostUSD > 0, "what the last heartbeat told, if there is one")
		require.Equal(t, chainID == "unknown", sessions[0].CostUnknown())
		require.False(t, sessions[0].EndedAt.IsZero())
	}
	policy := second.cfg.Policy()
	policy.DayBudgetUSD = policy.For(2).BudgetUSD
	admission, err := second.records().Review(t.Context(), escalation.AdmissionRequest{ChainID: "another", Tier: 1, At: opened}, policy)
	require.NoError(t, err)
	require.Equal(t, escalation.RuleDayBudget, admission.Rule, "nobody knows what the unknown chain has spent of what was reserved for it")
	locks, err := second.records().ServiceLocks(t.Context())
	require.NoError(t, err)
	require.Empty(t, locks)
}

// TestTerminatedChainHoldsNothing terminates a chain in the middle of Tier 2 while its worker continues. The service
// that it repairs and its reserved budget must be free soon after that, and not before.
func TestTerminatedChainHoldsNothing(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	marker := filepath.Join(t.TempDir(), "started")
	claude := simtest.Install(t, claudesim.Play(
		concluding("haiku", asksFor(2)),
		claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Bash("touch "+marker+"; sleep 300"))))
	s := startSite(t, temporalServer, environment(t, claude))
	run, records := s.start(nil), s.records()
	require.Eventually(t, func() bool { _, err := os.Stat(marker); return err == nil }, testTimeout, 50*time.Millisecond)
	sessions, err := records.Chain(t.Context(), run.GetID())
	require.NoError(t, err)
	require.Len(t, sessions, 2)
	repairing := escalation.AdmissionRequest{Services: []string{"jellyfin"}}
	_, err = records.OpenSession(t.Context(), sessions[1], repairing, s.cfg.Policy())
	require.NoError(t, err)

	review := func(dayBudget float64) escalation.Rule {
		policy := s.cfg.Policy()
		policy.DayBudgetUSD = dayBudget
		request := escalation.AdmissionRequest{ChainID: "another", Tier: 2, At: sessions[1].StartedAt, Services: repairing.Services}
		admission, err := records.Review(t.Context(), request, policy)
		require.NoError(t, err)
		return admission.Rule
	}
	reserved := sessions[1].BudgetUSD
	time.Sleep(4 * sweepInterval)
	require.Equal(t, escalation.RuleServiceBusy, review(0), "a chain that runs keeps its service")
	require.Equal(t, escalation.RuleDayBudget, review(reserved), "and what is reserved for it")
	running, err := records.Running(t.Context())
	require.NoError(t, err)
	require.Len(t, running, 1)

	var spent float64
	require.Eventually(t, func() bool {
		spent = s.heartbeat(run.GetID()).Total().CostUSD
		return spent > 0
	}, testTimeout, 50*time.Millisecond)
	require.NoError(t, syscall.Kill(s.heartbeat(run.GetID()).Now.PID, 0), "the heartbeat names a process that lives")
	require.NoError(t, temporalServer.TerminateWorkflow(t.Context(), run.GetID(), run.GetRunID(), "by the test"))
	require.Eventually(t, func() bool {
		return review(0) == escalation.RuleAdmitted && review(reserved) == escalation.RuleAdmitted
	}, testTimeout, 50*time.Millisecond)
	settled, err := records.BySessionID(t.Context(), sessions[1].SessionID)
	require.NoError(t, err)
	require.Equal(t, escalation.SessionFailed, settled.Status)
	require.Equal(t, "its chain ended without closing it: terminated", settled.Error)
	require.True(t, settled.CostEstimated)
	require.InDelta(t, spent, settled.CostUSD, 1e-9, "it is what the last heartbeat told")
	require.Equal(t, []int{1, 1}, []int{settled.Attempts, settled.Turns})
	first, err := records.BySessionID(t.Context(), sessions[0].SessionID)
	require.NoError(t, err)
	require.Equal(t, sessions[0], first, "what the chain closed itself stays as it is")
}

// heartbeat returns the last heartbeat of a running chain's tier. Without a heartbeat it is empty.
func (s *site) heartbeat(chainID string) (last activities.TierProgress) {
	described, err := s.client.DescribeWorkflowExecution(s.t.Context(), chainID, "")
	if err != nil || len(described.GetPendingActivities()) != 1 {
		return last
	}
	details := described.GetPendingActivities()[0].GetHeartbeatDetails()
	if encryption.NewConverter(s.cfg.Encryption.Keys).FromPayloads(details, &last) != nil {
		return activities.TierProgress{}
	}
	return last
}
