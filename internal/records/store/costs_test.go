package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// testCosts adds up sessions of all kinds: healthy, estimated, unknown, replaced, running, and outside of the time.
func testCosts(t *testing.T, database backend) {
	s := database(t)()
	record := func(id string, at time.Time, change func(*escalation.Session), reports ...escalation.Report) {
		t.Helper()
		session := opening("chain "+id, id, 0)
		session.StartedAt = at
		change(&session)
		policy := lenient()
		policy.Tiers[session.Tier-1].BudgetUSD = 2
		_, err := s.OpenSession(bounded(t), session, escalation.AdmissionRequest{}, policy)
		require.NoError(t, err)
		for _, report := range reports {
			mustClose(t, s, id, report, at.Add(time.Minute))
		}
		require.NoError(t, s.ReleaseServices(bounded(t), session.ChainID))
	}
	unchanged := func(*escalation.Session) {}
	manual := func(session *escalation.Session) {
		session.Tier, session.Model, session.Trigger = escalation.TierSafeRepair, "sonnet", escalation.TriggerManual
	}
	estimated := escalation.Report{Status: escalation.SessionFailed, Cost: escalation.Cost{CostUSD: 0.25, CostEstimated: true}, Attempts: 1}
	lost := escalation.Report{Status: escalation.SessionFailed, Cost: escalation.Cost{CostUSD: 0.5, CostEstimated: true}}
	repaired := completed(1)
	repaired.Verdict = &escalation.Verdict{Status: escalation.VerdictResolved, Services: []string{"web", "db"}}
	from, to := noon, noon.Add(time.Hour)
	record("early", from.Add(-time.Millisecond), unchanged, completed(64))
	record("late", to, unchanged, completed(64))
	record("running", from, unchanged)
	record("healthy", from, unchanged, completed(1))
	record("replaced", from.Add(15*time.Minute-time.Millisecond), unchanged, estimated, completed(2))
	record("repair", from.Add(15*time.Minute), manual, repaired)
	record("lost", from.Add(time.Hour-time.Millisecond), manual, lost)

	costs, err := s.Costs(bounded(t), from, to)
	require.NoError(t, err)
	spending := func(sessions int, usd, estimated, unknown float64) store.Spending {
		return store.Spending{Sessions: sessions, USD: usd, EstimatedUSD: estimated, UnknownUSD: unknown}
	}
	require.Equal(t, []store.QuarterCost{
		{Start: from, Spending: spending(2, 3, 0, 0)},
		{Start: from.Add(15 * time.Minute), Spending: spending(1, 1, 0, 0)},
		{Start: from.Add(45 * time.Minute), Spending: spending(1, 0.5, 0.5, 1.5)},
		{Start: from, Spending: spending(0, 0.25, 0.25, 0)}, // the replaced report
	}, costs.Quarters)
	look := store.KindCost{
		Tier: 1, Model: "haiku", Trigger: "scheduled", Conclusion: escalation.VerdictHealthy, Services: []string{"jellyfin"},
		Spending: spending(2, 3, 0, 0),
	}
	replaced := look
	replaced.Spending = spending(0, 0.25, 0.25, 0)
	require.Equal(t, []store.KindCost{
		look,
		{Tier: 2, Model: "sonnet", Trigger: "manual", Services: []string{}, Spending: spending(1, 0.5, 0.5, 1.5)},
		{
			Tier: 2, Model: "sonnet", Trigger: "manual", Conclusion: escalation.VerdictResolved, Services: []string{"web", "db"},
			Spending: spending(1, 1, 0, 0),
		},
		replaced,
	}, costs.Kinds)

	day, err := s.DaySpending(bounded(t), noon)
	require.NoError(t, err)
	require.Equal(t, store.DaySpending{SpentUSD: 64 + 64 + 1 + 2.25 + 1 + 2, Estimated: true, ReservedUSD: 2}, day)
	nothing, err := s.Costs(bounded(t), from.Add(-time.Hour), from.Add(-time.Minute))
	require.NoError(t, err)
	require.Equal(t, store.Costs{Quarters: []store.QuarterCost{}, Kinds: []store.KindCost{}}, nothing)
}
