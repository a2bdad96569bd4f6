package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

func testHealthyLooks(t *testing.T, database backend) {
	s := database(t)()
	looks, err := s.HealthyLooks(bounded(t), time.Time{})
	require.NoError(t, err)
	require.Zero(t, looks)

	healthy := escalation.Report{
		Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.02}, Verdict: &escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"},
	}
	for i, one := range []struct {
		cost    float64
		change  func(*escalation.Session)
		verdict escalation.VerdictStatus
		unsure  bool
	}{
		{0.02, func(*escalation.Session) {}, escalation.VerdictHealthy, false},
		{0.04, func(*escalation.Session) {}, escalation.VerdictHealthy, false},
		{0.03, func(*escalation.Session) {}, escalation.VerdictHealthy, false},
		{2, func(*escalation.Session) {}, escalation.VerdictHealthy, false},
		{9, func(*escalation.Session) {}, escalation.VerdictEscalate, false},
		{9, func(*escalation.Session) {}, escalation.VerdictHealthy, true},
		{9, func(s *escalation.Session) { s.HasRequest = true }, escalation.VerdictHealthy, false},
		{9, func(s *escalation.Session) { s.Tier = escalation.TierSafeRepair }, escalation.VerdictHealthy, false},
		{9, func(s *escalation.Session) { s.Purpose = escalation.PurposeRecheck }, escalation.VerdictHealthy, false},
		{9, func(s *escalation.Session) { s.StartedAt = noon.Add(-time.Hour) }, escalation.VerdictHealthy, false},
	} {
		record := opening(fmt.Sprintf("chain-%d", i), fmt.Sprint(i), 0)
		one.change(&record)
		opened := mustOpen(t, s, record)
		report := healthy
		report.CostUSD, report.CostEstimated = one.cost, one.unsure
		report.Verdict = &escalation.Verdict{Status: one.verdict, Summary: "a summary"}
		require.NoError(t, s.CloseSession(bounded(t), opened.SessionID, report, noon.Add(time.Minute)))
	}
	looks, err = s.HealthyLooks(bounded(t), noon)
	require.NoError(t, err)
	require.Equal(t, 4, looks.Count)
	require.InDelta(t, 0.035, looks.MedianUSD, 1e-9, "one dear look does not move it")
	require.Equal(t, []time.Time{noon.UTC(), noon.UTC()}, []time.Time{looks.First.UTC(), looks.Last.UTC()})
}
