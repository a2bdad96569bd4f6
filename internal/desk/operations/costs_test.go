package operations

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
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
	s.close(lost, escalation.Report{Status: escalation.SessionFailed, Cost: escalation.Cost{CostUSD: 0.25, CostEstimated: true}})
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
		`from is "yesterday"; it must be a date from 1970-01-01 to 9998-12-31, such as 2026-11-25`: {"yesterday", ""},
		`to is "2026-02-30"`:                               {"", "2026-02-30"},
		`from is "0001-01-01"`:                             {"0001-01-01", ""}, // the zero time
		`to is "9999-12-31"`:                               {"", "9999-12-31"}, // ends in a year that JSON cannot write
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

// TestCostsOfZones reports around every kind of change of the clocks. Each day is there once, and each session on its
// day.
func TestCostsOfZones(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	var starts []time.Time // of the sessions of all cases
	for _, c := range []struct{ zone, today string }{
		{"UTC", "2026-11-27"},
		{"Europe/Berlin", "2026-03-29"},       // 23 hours
		{"Europe/Berlin", "2026-10-25"},       // 25 hours
		{"America/Santiago", "2026-09-06"},    // begins at 01:00
		{"America/Santiago", "2026-04-04"},    // ends at the second midnight
		{"America/Havana", "2026-03-08"},      // begins at 01:00
		{"America/Havana", "2026-11-01"},      // has two midnights
		{"Asia/Beirut", "2026-03-29"},         // begins at 01:00
		{"Africa/Cairo", "2026-04-24"},        // begins at 01:00
		{"Australia/Lord_Howe", "2026-04-05"}, // 24 hours and a half
		{"Pacific/Apia", "2012-01-15"},        // 16 days after a day that was skipped
		{"Pacific/Kiritimati", "2026-11-27"},
		{"Africa/Casablanca", "2026-02-15"}, // Ramadan
	} {
		zone, err := time.LoadLocation(c.zone)
		require.NoError(t, err)
		today, err := calendar.Parse(c.today)
		require.NoError(t, err)
		s.operations.backend.Clock = func() time.Time { return today.Begin(zone).Add(20 * time.Hour) }
		for at := (today - 1).Begin(zone); at.Before(today.End(zone)); at = at.Add(5*time.Hour + 45*time.Minute) {
			s.close(s.open(fmt.Sprintf("%s %s", c.zone, at), at, nil), ended(1, escalation.VerdictHealthy))
			starts = append(starts, at)
		}
		for _, days := range [][2]string{{"", c.today}, {"", ""}, {(today - 20).String(), (today + 20).String()}} {
			filter, err := s.operations.Costs.Days(days[0], days[1])
			require.NoError(t, err)
			report, err := s.operations.Costs.Report(t.Context(), filter)
			require.NoError(t, err)
			sum, sessions := Cost{}, map[string]int{}
			for _, at := range starts {
				if !at.Before(report.From) && at.Before(report.To) {
					sessions[at.In(zone).Format(time.DateOnly)]++
				}
			}
			for i, day := range report.Days {
				sum.USD, sum.Sessions = sum.USD+day.USD, sum.Sessions+day.Sessions
				require.True(t, i == 0 || day.Day > report.Days[i-1].Day, "%v: %s", c, day.Day)
				require.Equal(t, sessions[day.Day], day.Sessions, "%v: %s", c, day.Day)
			}
			require.Equal(t, report.Total, sum, c)
			if days[0] == "" {
				require.Len(t, report.Days, 30-skippedDays(today-29, today, zone), "%v, to %q", c, days[1])
				require.Equal(t, c.today, report.Days[len(report.Days)-1].Day)
			}
		}
	}
}

func skippedDays(from, to calendar.Date, zone *time.Location) (skipped int) {
	for d := from; d <= to; d++ {
		if d.Begin(zone).Equal(d.End(zone)) {
			skipped++
		}
	}
	return skipped
}
