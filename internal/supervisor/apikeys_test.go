package supervisor

import (
	"bytes"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/apiproxy"
	"github.com/claudeops/claudeops/internal/claude"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/escalation"
)

// locate returns a CLI that calls itself version.
func locatedAs(t *testing.T, version string) *claude.CLI {
	t.Helper()
	scenario := claudesim.Play(claudesim.Always(claudesim.Say("hi")))
	scenario.ClaimedVersion = version
	cli, err := claude.Locate(t.Context(), claude.Options{Path: simtest.Install(t, scenario), ConfigDir: t.TempDir()})
	require.NoError(t, err)
	return cli
}

func TestSettleCost(t *testing.T) {
	t.Parallel()
	tested, untested := locatedAs(t, string(claudesim.VersionNew)), locatedAs(t, "9.0.0")
	for name, tc := range map[string]struct {
		cli       *claude.CLI
		reported  float64
		estimated bool
		count     apiproxy.Count
		want      float64
		// unsure is the record's mark of an estimate.
		unsure, warned bool
	}{
		"nothing was counted":              {cli: tested, reported: 0.2, estimated: true, want: 0.2, unsure: true},
		"the CLI was killed":               {cli: tested, reported: 0.2, estimated: true, count: apiproxy.Count{Calls: 3, CostUSD: 0.3}, want: 0.3},
		"killed amid a call":               {cli: tested, reported: 0.2, estimated: true, count: apiproxy.Count{Calls: 3, CostUSD: 0.3, Partial: 1}, want: 0.3, unsure: true},
		"killed before the first answer":   {cli: tested, estimated: true, count: apiproxy.Count{Partial: 1}, unsure: true},
		"both agree":                       {cli: tested, reported: 0.3, count: apiproxy.Count{Calls: 3, CostUSD: 0.3}, want: 0.3},
		"within tolerance":                 {cli: tested, reported: 0.3, count: apiproxy.Count{Calls: 3, CostUSD: 0.309}, want: 0.309},
		"a large sum within tolerance":     {cli: tested, reported: 10, count: apiproxy.Count{Calls: 3, CostUSD: 9.6}, want: 10},
		"the CLI left something out":       {cli: tested, reported: 0.3, count: apiproxy.Count{Calls: 3, CostUSD: 0.4}, want: 0.4, warned: true},
		"the CLI reports more":             {cli: tested, reported: 0.4, count: apiproxy.Count{Calls: 3, CostUSD: 0.3}, want: 0.4, warned: true},
		"prices that were never measured":  {cli: untested, reported: 0.3, count: apiproxy.Count{Calls: 3, CostUSD: 0.4}, want: 0.3, warned: true},
		"an untested CLI that was killed":  {cli: untested, reported: 0.2, estimated: true, count: apiproxy.Count{Calls: 3, CostUSD: 0.3}, want: 0.3},
		"agreement of the cheapest amount": {cli: tested, reported: 0.001, count: apiproxy.Count{Calls: 1, CostUSD: 0.002}, want: 0.002},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			a := &agent{cli: tc.cli, logger: slog.New(slog.NewTextHandler(&log, nil))}
			report := activities.AgentReport{Report: escalation.Report{CostUSD: tc.reported, CostEstimated: tc.estimated}}
			a.settleCost(&report, activities.AgentRun{SessionID: "s-1"}, tc.count)
			require.InDelta(t, tc.want, report.CostUSD, 1e-12)
			require.Equal(t, tc.unsure, report.CostEstimated)
			require.Equal(t, tc.warned, log.Len() > 0, "%s", &log)
		})
	}
}

func TestExplained(t *testing.T) {
	t.Parallel()
	failure := func(kind claude.ErrorKind) error { return &claude.Error{Kind: kind, Message: "the API call failed"} }
	requireKind := func(want claude.ErrorKind, err error) {
		var explained *claude.Error
		require.ErrorAs(t, err, &explained)
		require.Equal(t, want, explained.Kind)
	}
	require.NoError(t, explained(nil, apiproxy.Count{OverBudget: 1}))
	requireKind(claude.KindBudget, explained(failure(claude.KindRefused), apiproxy.Count{OverBudget: 1}))
	requireKind(claude.KindRefused, explained(failure(claude.KindRefused), apiproxy.Count{}))
	requireKind(claude.KindTimedOut, explained(failure(claude.KindTimedOut), apiproxy.Count{OverBudget: 1}))
	away := explained(failure(claude.KindUnavailable), apiproxy.Count{Unreachable: "the model's API could not be reached: no such host"})
	require.EqualError(t, away, "the API call failed; the model's API could not be reached: no such host")
	other := errors.New("something else")
	require.Equal(t, other, explained(other, apiproxy.Count{OverBudget: 1}))
}

func TestProgressHasTheProxysCount(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 0.2, progressOf(claude.Progress{CostUSD: 0.2}, apiproxy.Count{}).CostUSD, 1e-12)
	require.InDelta(t, 0.3, progressOf(claude.Progress{CostUSD: 0.2}, apiproxy.Count{Calls: 1, CostUSD: 0.3}).CostUSD, 1e-12)
}

func TestAPIUpstream(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, tc := range map[string]struct {
		environ []string
		host    string // "" is none
		problem string
	}{
		"a login":             {environ: []string{"HTTPS_PROXY=http://proxy"}},
		"a key":               {environ: []string{"ANTHROPIC_API_KEY=k"}, host: "api.anthropic.com"},
		"a gateway":           {environ: []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=http://gateway:4000/x"}, host: "gateway:4000"},
		"no address":          {environ: []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=gateway:4000"}, problem: "must be an http or https address"},
		"no such file":        {environ: []string{"ANTHROPIC_API_KEY=k", "NODE_EXTRA_CA_CERTS=/nowhere"}, problem: "NODE_EXTRA_CA_CERTS"},
		"no certificate":      {environ: []string{"ANTHROPIC_API_KEY=k", "NODE_EXTRA_CA_CERTS=" + file}, problem: "holds no certificate"},
		"no client's":         {environ: []string{"ANTHROPIC_API_KEY=k", "CLAUDE_CODE_CLIENT_CERT=" + file}, problem: "CLAUDE_CODE_CLIENT_CERT"},
		"an encrypted key":    {environ: []string{"ANTHROPIC_API_KEY=k", "CLAUDE_CODE_CLIENT_KEY=" + file, "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE=p"}, problem: "without a passphrase"},
		"files of a login's":  {environ: []string{"NODE_EXTRA_CA_CERTS=/nowhere"}},
		"a cloud beside keys": {environ: []string{"ANTHROPIC_API_KEY=k", "CLAUDE_CODE_USE_BEDROCK=1"}},
	} {
		upstream, found, err := APIUpstream(claude.Options{Environ: tc.environ})
		if tc.problem != "" {
			require.ErrorContains(t, err, tc.problem, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, tc.host != "", found, name)
		if found {
			require.Equal(t, tc.host, upstream.Upstream.Host, name)
		}
	}
}

// TestAPITransport holds that the worker reaches the API as the CLI would: with the operator's certificates, and
// through the operator's proxy.
func TestAPITransport(t *testing.T) {
	t.Parallel()
	get := func(t *testing.T, address string, environ ...string) (string, error) {
		t.Helper()
		transport, err := apiTransport(environ)
		require.NoError(t, err)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		require.NoError(t, err)
		answer, err := transport.RoundTrip(request)
		if err != nil {
			return "", err
		}
		require.NoError(t, answer.Body.Close())
		return answer.Header.Get("Asked"), nil
	}
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Asked", r.URL.String()) })
	secure, proxy := httptest.NewTLSServer(echo), httptest.NewServer(echo)
	t.Cleanup(secure.Close)
	t.Cleanup(proxy.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	require.NoError(t, os.WriteFile(authority, text, 0o600))

	_, err := get(t, secure.URL+"/v1")
	require.ErrorContains(t, err, "certificate")
	said, err := get(t, secure.URL+"/v1", "NODE_EXTRA_CA_CERTS="+authority)
	require.NoError(t, err)
	require.Equal(t, "/v1", said)
	said, err = get(t, "http://api.example/v1", "http_proxy="+proxy.URL)
	require.NoError(t, err)
	require.Equal(t, "http://api.example/v1", said, "the proxy got the whole address")
}
