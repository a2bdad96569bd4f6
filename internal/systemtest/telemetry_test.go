package systemtest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// measuredSite is an installation whose worker has telemetry.
type measuredSite struct {
	*site

	book      *logBook
	telemetry *telemetry.Telemetry
	// url is the address of the metrics and the health checks.
	url string
}

// startMeasuredSite starts a worker with metrics on the shared Temporal server.
func startMeasuredSite(t *testing.T, environ []string) measuredSite {
	t.Helper()
	startTemporal(t)
	environ = append(environ, "CLAUDEOPS_METRICS_ADDRESS=127.0.0.1:0")
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	watched, err := supervisor.StartTelemetry(t.Context(), cfg, environ, "v1.2.3", quiet())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, watched.Close()) })
	options := client.Options{HostPort: sharedTemporal.server.Address(), Logger: log.NewStructuredLogger(quiet())}
	watched.Instrument(&options)
	c, err := supervisor.Connect(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	s, book := newSiteIn(t, c, supervisor.Environment{Environ: environ, Telemetry: watched})
	w := measuredSite{site: s, book: book, telemetry: watched, url: fmt.Sprintf("http://127.0.0.1:%d", watched.Ports()[0])}
	require.Equal(t, http.StatusServiceUnavailable, w.status("/readyz"), "it does not work yet")
	require.Equal(t, http.StatusOK, w.status("/healthz"))
	s.begin()
	return w
}

// status returns the status code of a page.
func (w measuredSite) status(page string) int {
	w.t.Helper()
	status, _ := w.get(page)
	return status
}

func (w measuredSite) get(page string) (int, string) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+page, http.NoBody)
	require.NoError(w.t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(w.t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(w.t, err)
	return response.StatusCode, string(body)
}

// scrape returns the metrics as Prometheus reads them.
func (w measuredSite) scrape() map[string]*dto.MetricFamily {
	w.t.Helper()
	_, body := w.get("/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	require.NoError(w.t, err)
	return families
}

// sum returns the sum of the series of a metric that have all of these labels ("name=value"). It adds up the number of
// observations of a histogram.
func sum(families map[string]*dto.MetricFamily, name string, labels ...string) (total float64) {
	for _, metric := range families[name].GetMetric() {
		has := map[string]bool{}
		for _, label := range metric.GetLabel() {
			has[label.GetName()+"="+label.GetValue()] = true
		}
		matches := true
		for _, label := range labels {
			matches = matches && has[label]
		}
		if matches {
			total += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return total
}

// TestTelemetryOfAChain runs a chain of two tiers to a gate. A person overrides the gate. Then the test checks the
// worker's metrics and log.
func TestTelemetryOfAChain(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	tools := installPrograms(t, "docker")
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Bash("docker restart web"), claudesim.Conclude(asksFor(2))),
		claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Bash("docker ps"), claudesim.Conclude(needsPerson()))))
	s := startMeasuredSite(t, environment(t, claude, append(tools.settings(), "CLAUDEOPS_GATE_TIMEOUT=72h", "CLAUDEOPS_DAY_BUDGET_USD=20")...))
	run := s.start(nil)
	gate := s.awaitGate(run.GetID(), "gate-1")
	require.Equal(t, http.StatusOK, s.status("/readyz"))

	var got map[string]*dto.MetricFamily
	require.Eventually(t, func() bool { // an observation follows
		got = s.scrape()
		return sum(got, "claudeops_oldest_gate_age_seconds") > 0 && sum(got, "claudeops_open_sessions") == 0
	}, testTimeout, 50*time.Millisecond)
	for series, want := range map[string]float64{
		"claudeops_sessions_total tier=1 model=haiku continuity=fresh status=completed":   1,
		"claudeops_sessions_total tier=2 model=sonnet continuity=resume status=completed": 1,
		"claudeops_session_duration_seconds":                                              2,
		"claudeops_guard_refusals_total tier=1":                                           1,
		"claudeops_guard_refusals_total tier=2":                                           0,
		"claudeops_agents_running":                                                        0,
		"claudeops_agents_allowed":                                                        2,
		"claudeops_day_budget_dollars":                                                    20,
		"claudeops_incidents state=waiting":                                               2,
		"claudeops_store_errors_total":                                                    0,
		"claudeops_archive_errors_total":                                                  0,
		"claudeops_chains_total":                                                          0,
	} {
		words := strings.Fields(series)
		require.InDelta(t, want, sum(got, words[0], words[1:]...), 0, series)
	}
	chain := s.query(run)
	require.InDelta(t, chain.CostUSD, sum(got, "claudeops_cost_dollars_total"), 1e-9)
	require.Positive(t, sum(got, "claudeops_tokens_total", "kind=output"))
	require.GreaterOrEqual(t, sum(got, "claudeops_open_gates"), 1.0, "other tests on the server have gates, too")
	require.InDelta(t, 2, sum(got, "temporal_activity_schedule_to_start_latency_seconds", "activity_type=RunTier"), 0)
	require.Positive(t, sum(got, "temporal_workflow_task_schedule_to_start_latency_seconds"))

	_, err := s.resolve(run.GetID(), escalation.GateAnswer{GateID: gate.ID, Action: escalation.GateOverride, Actor: "ada"})
	require.NoError(t, err)
	chain, err = s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeOverridden, chain.Outcome)
	got = s.scrape()
	require.InDelta(t, 1, sum(got, "claudeops_chains_total", "outcome=overridden"), 0)
	require.InDelta(t, 1, sum(got, "claudeops_chains_total"), 0)

	require.NoError(t, s.stop())
	require.Equal(t, http.StatusServiceUnavailable, s.status("/readyz"), "a worker that stops gets no more work")
	require.Equal(t, http.StatusOK, s.status("/healthz"))
	require.InDelta(t, 1, sum(s.scrape(), "claudeops_chains_total"), 0, "the counters stay")
}
