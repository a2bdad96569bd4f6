package telemetry_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
)

// start starts telemetry with metrics on a free port, and returns the address of its server.
func start(t *testing.T, options telemetry.Options) (*telemetry.Telemetry, string) {
	t.Helper()
	options.Logger = slog.New(slog.DiscardHandler)
	if options.MetricsAddress == "" {
		options.MetricsAddress = "127.0.0.1:0"
	}
	watched, err := telemetry.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, watched.Close()) })
	return watched, fmt.Sprintf("http://127.0.0.1:%d", watched.Ports()[0])
}

// get returns the status and the body of a page.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

// scrape returns the metrics at url as Prometheus reads them.
func scrape(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	status, body := get(t, url+"/metrics")
	require.Equal(t, http.StatusOK, status, body)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	require.NoError(t, err)
	return families
}

// value returns the value of the series with exactly these labels ("name=value"); -1 if there is none.
func value(families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	for _, metric := range families[name].GetMetric() {
		found := 0
		for _, label := range metric.GetLabel() {
			for _, want := range labels {
				if want == label.GetName()+"="+label.GetValue() {
					found++
				}
			}
		}
		if found == len(labels) && len(metric.GetLabel()) == len(labels) {
			return metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return -1
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	watched, url := start(t, telemetry.Options{Version: "v1.2.3"})
	m := watched.Metrics()
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	m.SetLimits(telemetry.Limits{Agents: 2, DayBudgetUSD: 20, Models: map[escalation.Tier]string{1: "haiku"}})
	m.ChainEnded(escalation.OutcomeResolved)
	m.SessionEnded(escalation.Session{
		Tier: escalation.TierSafeRepair, Model: "sonnet", Continuity: escalation.ContinuityResume, StartedAt: at, EndedAt: at.Add(time.Minute),
		Report: escalation.Report{
			Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.5},
			Tokens: escalation.TokenUsage{Input: 1, Output: 2, CacheRead: 3, CacheCreation: 4},
		},
	})
	m.SessionEnded(escalation.Session{Tier: 3, Model: "opus", Report: escalation.Report{Status: escalation.SessionResumeFailed}})
	m.SessionEnded(escalation.Session{
		Tier: 3, Model: "opus", Continuity: escalation.ContinuityHandoff, ContinuityReason: escalation.ReasonContextPressure,
		Report: escalation.Report{Status: escalation.SessionCompleted},
	})
	m.CallRefused(1, "never: curl file.io")
	m.CallRefused(1, "./agents-own-program --with words")
	m.CallRefused(1, "cooldown")
	m.ArchiveFailed(true)
	m.StoreFailed("charge", io.EOF)
	m.StoreFailed("charge", nil)
	ended := m.AgentStarted()
	m.Observe(telemetry.Observation{
		At: at, Gates: 2, OldestGate: at.Add(-time.Hour), Incidents: map[escalation.IncidentState]int{escalation.IncidentWaiting: 3},
	})

	got := scrape(t, url)
	for series, want := range map[string]float64{
		"claudeops_chains_total outcome=resolved":                                         1,
		"claudeops_chains_total outcome=failed":                                           0,
		"claudeops_sessions_total continuity=resume model=sonnet status=completed tier=2": 1,
		"claudeops_session_duration_seconds tier=2":                                       1,
		"claudeops_cost_dollars_total model=sonnet tier=2":                                0.5,
		"claudeops_cost_dollars_total model=haiku tier=1":                                 0,
		"claudeops_tokens_total kind=cache_creation model=sonnet tier=2":                  4,
		"claudeops_resume_failures_total reason=resume_failed":                            1,
		"claudeops_resume_failures_total reason=context_pressure":                         1,
		"claudeops_resume_failures_total reason=transcript_lost":                          0,
		"claudeops_guard_refusals_total rule=never tier=1":                                1,
		"claudeops_guard_refusals_total rule=policy tier=1":                               1,
		"claudeops_guard_refusals_total rule=cooldown tier=1":                             1,
		"claudeops_archive_errors_total operation=save":                                   1,
		"claudeops_store_errors_total operation=charge":                                   1,
		"claudeops_agents_running":                                                        1,
		"claudeops_agents_allowed":                                                        2,
		"claudeops_day_budget_dollars":                                                    20,
		"claudeops_open_gates":                                                            2,
		"claudeops_oldest_gate_age_seconds":                                               3600,
		"claudeops_oldest_session_age_seconds":                                            0,
		"claudeops_incidents state=waiting":                                               3,
		"claudeops_build_info version=v1.2.3":                                             1,
	} {
		words := strings.Fields(series)
		require.InDelta(t, want, value(got, words[0], words[1:]...), 1e-9, series)
	}
	ended()
	require.Zero(t, value(scrape(t, url), "claudeops_agents_running"))
}

// TestMetricNames checks the names of all own metrics against the conventions of Prometheus.
func TestMetricNames(t *testing.T) {
	t.Parallel()
	_, url := start(t, telemetry.Options{})
	var own []*dto.MetricFamily
	for name, family := range scrape(t, url) {
		if strings.HasPrefix(name, "claudeops_") {
			own = append(own, family)
		}
	}
	require.Greater(t, len(own), 10)
	problems, err := promlint.NewWithMetricFamilies(own).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}

// TestModelsAreBounded checks that people who name many models cannot create a series for each.
func TestModelsAreBounded(t *testing.T) {
	t.Parallel()
	watched, url := start(t, telemetry.Options{})
	for i := range 100 {
		watched.Metrics().SessionEnded(escalation.Session{Tier: 1, Model: fmt.Sprintf("model-%d", i), Report: escalation.Report{Cost: escalation.Cost{CostUSD: 1}}})
	}
	got := scrape(t, url)
	require.InDelta(t, 1, value(got, "claudeops_cost_dollars_total", "model=model-0", "tier=1"), 0)
	require.InDelta(t, 80, value(got, "claudeops_cost_dollars_total", "model=other", "tier=1"), 0)
}

// TestOff checks that nothing is measured or served by default, and that all methods can be called nevertheless.
func TestOff(t *testing.T) {
	t.Parallel()
	watched, err := telemetry.Start(t.Context(), telemetry.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.Empty(t, watched.Ports())
	require.Nil(t, watched.Metrics())
	for _, off := range []*telemetry.Telemetry{watched, nil} {
		m := off.Metrics()
		m.SetLimits(telemetry.Limits{})
		m.ChainEnded(escalation.OutcomeHealthy)
		m.SessionEnded(escalation.Session{})
		m.CallRefused(1, "x")
		m.ArchiveFailed(false)
		m.StoreFailed("charge", io.EOF)
		m.Observe(telemetry.Observation{})
		m.AgentStarted()()
		off.SetProbe(nil)
		require.NoError(t, off.Close())
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	_, err = telemetry.Start(t.Context(), telemetry.Options{
		MetricsAddress: listener.Addr().String(), Logger: slog.New(slog.DiscardHandler),
	})
	require.ErrorContains(t, err, "CLAUDEOPS_METRICS_ADDRESS="+listener.Addr().String())
	require.ErrorContains(t, err, "choose another port")
}
