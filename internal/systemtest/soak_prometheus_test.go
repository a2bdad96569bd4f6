//go:build soak

package systemtest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// prometheus is a real Prometheus.
type prometheus struct {
	t   *testing.T
	url string
}

// startPrometheus starts a Prometheus that scrapes a worker each second and evaluates the alert rules.
func startPrometheus(t *testing.T, target string) prometheus {
	t.Helper()
	root, dir := simtest.ModuleRoot(t), t.TempDir()
	program := filepath.Join(root, "bin", "prometheus", "prometheus")
	if _, err := os.Stat(program); err != nil {
		t.Skip("the real Prometheus is not there: `make bin/prometheus/prometheus` builds it, which takes minutes")
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%s]\n"+
		"scrape_configs: [{job_name: claudeops, static_configs: [{targets: [%q]}]}]\n",
		filepath.Join(root, "deploy", "prometheus", "rules.yaml"), target)
	file := filepath.Join(dir, "prometheus.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	command := exec.CommandContext(t.Context(), program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	command.Stdout, command.Stderr = t.Output(), t.Output()
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Wait() }) // the context has killed it
	t.Cleanup(func() { _ = command.Process.Kill() })
	p := prometheus{t, "http://" + address}
	require.Eventually(t, func() bool { return p.get("/-/ready", nil) == nil }, testTimeout, 100*time.Millisecond)
	return p
}

// get queries the API and decodes the data of the answer into data. If data is nil, get does not decode the answer.
func (p prometheus) get(page string, data any) error {
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+page, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", page, response.Status)
	}
	if data == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(&struct{ Data any }{data})
}

// query returns the values of the series of a query.
func (p prometheus) query(expr string) (values []string, err error) {
	var data struct {
		Result []struct{ Value [2]any }
	}
	err = p.get("/api/v1/query?query="+url.QueryEscape(expr), &data)
	for _, series := range data.Result {
		values = append(values, fmt.Sprint(series.Value[1]))
	}
	return values, err
}

// await waits until a query has exactly one series with this value.
func (p prometheus) await(expr, want string) {
	p.t.Helper()
	var got []string
	require.Eventually(p.t, func() bool {
		var err error
		got, err = p.query(expr)
		return err == nil && len(got) == 1 && got[0] == want
	}, testTimeout, 200*time.Millisecond, "%s is not %s", expr, want)
}

// TestSoakPrometheus starts a real Prometheus, which scrapes a worker. It evaluates all alert rules and all queries of
// the dashboard. After the worker has ended, Prometheus must report the missing worker.
func TestSoakPrometheus(t *testing.T) {
	claude := simtest.Install(t, claudesim.Play(concluding("haiku", asksFor(2)), concluding("sonnet", resolved())))
	s := startMeasuredSite(t, environment(t, claude))
	p := startPrometheus(t, strings.TrimPrefix(s.url, "http://"))
	p.await(`claudeops_chains_total{outcome="resolved"}`, "0")
	chain, err := s.finish(s.start(nil))
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome)
	p.await(`claudeops_chains_total{outcome="resolved"}`, "1")
	p.await(`sum(claudeops_sessions_total)`, "2")
	p.await(`up{job="claudeops"}`, "1")

	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	require.Eventually(t, func() bool {
		require.NoError(t, p.get("/api/v1/rules", &rules))
		for _, rule := range rules.Groups[0].Rules {
			if rule.Health != "ok" {
				t.Log(rule.Name, rule.Health, rule.LastError)
				return false
			}
		}
		return len(rules.Groups[0].Rules) > 10
	}, testTimeout, time.Second, "a rule cannot be evaluated")

	shown, all := 0, 0
	for _, expr := range dashboardQueries(t) {
		values, err := p.query(expr)
		require.NoError(t, err, expr)
		all++
		if len(values) > 0 {
			shown++
		}
	}
	require.Greater(t, shown, 20, "most panels show something")

	require.NoError(t, s.stop())
	require.NoError(t, s.telemetry.Close())
	p.await(`ALERTS{alertname="ClaudeOpsWorkerDown", alertstate="pending"}`, "1")
	t.Logf("soak: Prometheus evaluated %d alert rules and %d queries of the dashboard, %d with values", len(rules.Groups[0].Rules), all, shown)
}

// dashboardQueries returns the queries of the dashboard with its variables filled in.
func dashboardQueries(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(simtest.ModuleRoot(t), "deploy", "grafana", "claude-ops.json"))
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	var queries []string
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, strings.NewReplacer("$job", ".*", "$__rate_interval", "1m").Replace(target.Expr))
		}
	}
	require.NotEmpty(t, queries)
	return queries
}
