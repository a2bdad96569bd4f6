package operations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/chaintest"
	"github.com/claudeops/claudeops/internal/escalation"
)

// TestCosts adds up the sessions of three days, over a change of summer time.
func TestCosts(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	now := time.Date(2026, 3, 30, 12, 0, 0, 0, berlin)
	s := newStage(t, "version: 1\nservices: [{name: jellyfin, aliases: [media]}]\n")
	s.operations.backend.Clock = func() time.Time { return now }
	first := time.Date(2026, 3, 28, 23, 45, 0, 0, berlin)
	repair := func(session *escalation.Session) {
		session.Tier, session.Model, session.Trigger = escalation.TierSafeRepair, "sonnet", escalation.TriggerManual
	}
	s.close(s.open("a", first, nil), ended(1, escalation.VerdictHealthy))
	s.close(s.open("b", time.Date(2026, 3, 29, 0, 0, 0, 0, berlin), nil), ended(0.5, escalation.VerdictHealthy, "media", "Jellyfin"))
	s.close(s.open("c", time.Date(2026, 3, 29, 23, 59, 0, 0, berlin), repair), ended(2, escalation.VerdictResolved, "Jellyfin", "db"))
	lost := s.open("d", time.Date(2026, 3, 30, 0, 0, 0, 0, berlin), nil)
	s.close(lost, escalation.Report{Status: escalation.SessionFailed, CostUSD: 0.25, CostEstimated: true})
	s.close(lost, ended(0.75, escalation.VerdictEscalate, "db")) // after a reset
	s.open("running", now.Add(-time.Minute), nil)

	report, err := s.operations.Costs.Report(t.Context(), CostFilter{})
	require.NoError(t, err)
	require.Equal(t, "2026-03-01 to 2026-03-30 (CEST)", report.Period())
	require.Equal(t, Cost{USD: 4.5, EstimatedUSD: 0.25, Sessions: 4}, report.Total)
	require.Len(t, report.Days, 30)
	require.Equal(t, []DayCost{
		{"2026-03-27", Cost{}},
		{"2026-03-28", Cost{USD: 1, Sessions: 1}},
		{"2026-03-29", Cost{USD: 2.5, Sessions: 2}},
		{"2026-03-30", Cost{USD: 1, EstimatedUSD: 0.25, Sessions: 1}},
	}, report.Days[26:])
	require.Equal(t, []TierCost{{1, Cost{USD: 2.5, EstimatedUSD: 0.25, Sessions: 3}}, {2, Cost{USD: 2, Sessions: 1}}}, report.Tiers)
	require.Equal(t, []NamedCost{
		{"haiku", Cost{USD: 2.5, EstimatedUSD: 0.25, Sessions: 3}}, {"sonnet", Cost{USD: 2, Sessions: 1}},
	}, report.Models)
	require.Equal(t, []NamedCost{
		{"scheduled", Cost{USD: 2.5, EstimatedUSD: 0.25, Sessions: 3}}, {"manual", Cost{USD: 2, Sessions: 1}},
	}, report.Triggers)
	require.Equal(t, []NamedCost{
		{"db", Cost{USD: 2, EstimatedUSD: 0.25, Sessions: 2}}, {"jellyfin", Cost{USD: 1.5, Sessions: 2}}, {"", Cost{USD: 1, Sessions: 1}},
	}, report.Services)
	require.Equal(t, HealthyLook{Sessions: 2, AverageUSD: 0.75}, report.HealthyLook)
	require.InDelta(t, 4.5*30*24/now.Sub(first).Hours(), report.MonthUSD, 1e-9)

	filter, err := s.operations.Costs.Days("2026-03-29", "2026-03-29")
	require.NoError(t, err)
	report, err = s.operations.Costs.Report(t.Context(), filter)
	require.NoError(t, err)
	require.Equal(t, "2026-03-29 to 2026-03-29 (CEST)", report.Period())
	require.Equal(t, []DayCost{{"2026-03-29", Cost{USD: 2.5, Sessions: 2}}}, report.Days)
	require.Equal(t, 23*time.Hour, report.To.Sub(report.From), "a day of summer time")
}

func TestCostsRefuse(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	for problem, days := range map[string][2]string{
		`from is "yesterday"; it must be a day, such as 2026-03-01`: {"yesterday", ""},
		`to is "2026-02-30"`:                               {"", "2026-02-30"},
		"from must be before the end of the time":          {"2026-02-02", "2026-02-01"},
		"from is more than 400 days before the end of the": {"2025-01-01", "2026-02-28"},
	} {
		filter, err := s.operations.Costs.Days(days[0], days[1])
		if err == nil {
			_, err = s.operations.Costs.Report(t.Context(), filter)
		}
		require.ErrorContains(t, err, problem)
		require.Equal(t, KindInvalid, KindOf(err))
	}
	report, err := s.operations.Costs.Report(t.Context(), CostFilter{From: chaintest.Noon.Add(-time.Hour)})
	require.NoError(t, err)
	require.Zero(t, report.MonthUSD)
	require.Equal(t, []DayCost{{Day: "2026-03-01"}}, report.Days)
}
