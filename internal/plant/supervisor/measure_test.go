package supervisor

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
	"github.com/claudeops/claudeops/workflows"
)

// TestSessionsCountOnce closes sessions repeatedly, as repeated activities and the sweep do.
func TestSessionsCountOnce(t *testing.T) {
	t.Parallel()
	opened, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ops.db"))
	require.NoError(t, err)
	watched, err := telemetry.Start(t.Context(), telemetry.Options{MetricsAddress: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, watched.Close()) })
	metrics := watched.Metrics()
	kept := opened.With(hooks(redact.New(nil), metrics, &recovery{}))
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, id := range []string{"closed", "settled"} {
		_, err := kept.OpenSession(t.Context(), escalation.Session{ChainID: id, SessionID: id, Tier: 1, Model: "haiku", StartedAt: at},
			escalation.AdmissionRequest{}, escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)})
		require.NoError(t, err)
	}
	report := escalation.Report{Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.25}}
	for range 2 {
		require.NoError(t, kept.CloseSession(t.Context(), "closed", report, at.Add(time.Minute)))
		_, err := kept.SettleSession(t.Context(), "settled", report, at.Add(time.Minute))
		require.NoError(t, err)
	}
	_, err = kept.SettleSession(t.Context(), "closed", report, at.Add(time.Minute))
	require.NoError(t, err)
	count := func(name string) (total float64) {
		t.Helper()
		response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", watched.Ports()[0]))
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(response.Body)
		require.NoError(t, err)
		for _, metric := range families[name].GetMetric() {
			total += metric.GetCounter().GetValue()
		}
		return total
	}
	require.InDelta(t, 2, count("claudeops_sessions_total"), 0)
	require.InDelta(t, 0.5, count("claudeops_cost_dollars_total"), 1e-9)
	require.Zero(t, count("claudeops_store_errors_total"))

	require.NoError(t, opened.Close())
	require.Error(t, kept.CloseSession(t.Context(), "closed", report, at))
	require.Error(t, kept.AppendEvents(t.Context(), []escalation.Event{{Key: "1", ChainID: "closed", At: at}}))
	_, err = kept.Running(t.Context())
	require.Error(t, err)
	require.InDelta(t, 3, count("claudeops_store_errors_total"), 0)
}

// TestTimesAreTheDatabases settles a session, claims a duty and records a delivery on a host whose clock is years
// ahead.
func TestTimesAreTheDatabases(t *testing.T) {
	t.Parallel()
	own, err := store.OpenPostgres(t.Context(), postgrestest.Database(t), 4)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, own.Close()) })
	kept := own.With(store.Hooks{HostTimes: true})
	now, ahead := time.Now(), time.Now().AddDate(5, 0, 0)
	_, err = kept.OpenSession(t.Context(), escalation.Session{ChainID: "lost", SessionID: "lost", Tier: 1, Model: "haiku", StartedAt: now},
		escalation.AdmissionRequest{}, escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)})
	require.NoError(t, err)
	settled, err := kept.SettleSession(t.Context(), "lost", escalation.Report{Status: escalation.SessionFailed}, ahead)
	require.NoError(t, err)
	require.True(t, settled)
	session, err := own.BySessionID(t.Context(), "lost")
	require.NoError(t, err)
	require.WithinDuration(t, now, session.EndedAt, time.Hour)

	for holder, clock := range map[string]time.Time{"a": ahead, "b": now} {
		claimed, err := kept.ClaimDuty(t.Context(), "of "+holder, holder, clock, clock.Add(time.Hour))
		require.NoError(t, err)
		require.True(t, claimed)
		other, err := kept.ClaimDuty(t.Context(), "of "+holder, "c", now, now.Add(time.Hour))
		require.NoError(t, err)
		require.False(t, other, "%s has it for an hour", holder)
		late, err := own.ClaimDuty(t.Context(), "of "+holder, "c", now.Add(2*time.Hour), now.Add(3*time.Hour))
		require.NoError(t, err)
		require.True(t, late, "and for no longer")
	}
	require.NoError(t, kept.Claim(t.Context(), store.Namespace{ID: "here", Name: "default"}, ahead))
	require.NoError(t, own.Release(t.Context(), now.Add(3*time.Minute)), "a worker was there now, and not years ahead")
	require.NoError(t, kept.RecordDelivery(t.Context(), "key", "target", ahead))
	_, err = own.RemoveIncidents(t.Context(), now.AddDate(1, 0, 0)) // and the deliveries before that time
	require.NoError(t, err)
	delivered, err := own.Delivered(t.Context(), "key")
	require.NoError(t, err)
	require.Empty(t, delivered)
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	ended := workflows.ChainResult{Outcome: escalation.OutcomeNeedsHuman}
	require.Equal(t, escalation.OutcomeNeedsHuman, outcomeOf(ended, nil))
	require.Equal(t, escalation.OutcomeAborted, outcomeOf(ended, temporal.NewCanceledError()))
	require.Equal(t, escalation.OutcomeFailed, outcomeOf(ended, errors.New("its input is refused")))
	require.Equal(t, escalation.OutcomeFailed, outcomeOf("no chain", nil))
	require.Empty(t, outcomeOf(nil, &workflow.ContinueAsNewError{}))
}
