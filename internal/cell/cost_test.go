package cell

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/proxy"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// locatedAs returns a simulated CLI that reports version as its own.
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
		count     proxy.Count
		want      float64
		// unsure is the expected CostEstimated, and warned says that a warning is expected.
		unsure, warned bool
	}{
		"nothing was counted":              {cli: tested, reported: 0.2, estimated: true, want: 0.2, unsure: true},
		"the CLI was killed":               {cli: tested, reported: 0.2, estimated: true, count: proxy.Count{Calls: 3, CostUSD: 0.3}, want: 0.3},
		"killed amid a call":               {cli: tested, reported: 0.2, estimated: true, count: proxy.Count{Calls: 3, CostUSD: 0.3, Partial: 1}, want: 0.3, unsure: true},
		"killed before the first answer":   {cli: tested, estimated: true, count: proxy.Count{Partial: 1}, unsure: true},
		"both agree":                       {cli: tested, reported: 0.3, count: proxy.Count{Calls: 3, CostUSD: 0.3}, want: 0.3},
		"within tolerance":                 {cli: tested, reported: 0.3, count: proxy.Count{Calls: 3, CostUSD: 0.309}, want: 0.309},
		"a large sum within tolerance":     {cli: tested, reported: 10, count: proxy.Count{Calls: 3, CostUSD: 9.6}, want: 10},
		"the CLI left something out":       {cli: tested, reported: 0.3, count: proxy.Count{Calls: 3, CostUSD: 0.4}, want: 0.4, warned: true},
		"the CLI reports more":             {cli: tested, reported: 0.4, count: proxy.Count{Calls: 3, CostUSD: 0.3}, want: 0.4, warned: true},
		"prices that were never measured":  {cli: untested, reported: 0.3, count: proxy.Count{Calls: 3, CostUSD: 0.4}, want: 0.3, warned: true},
		"an untested CLI that was killed":  {cli: untested, reported: 0.2, estimated: true, count: proxy.Count{Calls: 3, CostUSD: 0.3}, want: 0.3},
		"agreement of the cheapest amount": {cli: tested, reported: 0.001, count: proxy.Count{Calls: 1, CostUSD: 0.002}, want: 0.002},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			r := &run{Host: &Host{cli: tc.cli, logger: slog.New(slog.NewTextHandler(&log, nil))}, Spec: Spec{SessionID: "s-1"}, count: tc.count}
			r.result.CostUSD, r.result.CostEstimated = tc.reported, tc.estimated
			r.settleCost(t.Context())
			require.InDelta(t, tc.want, r.result.CostUSD, 1e-12)
			require.Equal(t, tc.unsure, r.result.CostEstimated)
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
	require.NoError(t, explained(nil, proxy.Count{OverBudget: 1}))
	requireKind(claude.KindBudget, explained(failure(claude.KindRequest), proxy.Count{OverBudget: 1}))
	requireKind(claude.KindRequest, explained(failure(claude.KindRequest), proxy.Count{}))
	requireKind(claude.KindTimedOut, explained(failure(claude.KindTimedOut), proxy.Count{OverBudget: 1}))
	away := explained(failure(claude.KindUnavailable), proxy.Count{Unreachable: "the model's API could not be reached: no such host"})
	require.EqualError(t, away, "the API call failed; the model's API could not be reached: no such host")
	until := time.Unix(1_895_809_600, 0)
	requireKind(claude.KindLimited, explained(failure(claude.KindUnavailable), proxy.Count{LimitedUntil: until}))
	var limited *claude.Error
	require.ErrorAs(t, explained(failure(claude.KindUnavailable), proxy.Count{LimitedUntil: until, LimitKind: "seven_day"}), &limited)
	require.Equal(t, "seven_day", limited.LimitKind)
	requireKind(claude.KindAuth, explained(failure(claude.KindAuth), proxy.Count{LimitedUntil: until}))
	ours := explained(failure(claude.KindAuth), proxy.Count{Refused: `a session's request may not have the member "speed"`})
	requireKind(claude.KindRequest, ours)
	require.ErrorContains(t, ours, `the worker's proxy does not pass on what the CLI asks (a session's request may not have the member "speed")`)
	require.NotContains(t, ours.Error(), "credentials")
	other := errors.New("something else")
	require.Equal(t, other, explained(other, proxy.Count{OverBudget: 1}))
}
