package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

// climbed is a chain through all tiers, with a detour for a conversation that was gone.
func climbed() escalation.Chain {
	session := func(id, parent int64, tier escalation.Tier, model string, cost float64, took time.Duration) escalation.Session {
		return escalation.Session{
			ID: id, ParentID: parent, Tier: tier, Model: model, Continuity: escalation.ContinuityResume,
			Report: escalation.Report{
				Status: escalation.SessionCompleted, CostUSD: cost, DurationMS: took.Milliseconds(),
				Verdict: &escalation.Verdict{Status: escalation.VerdictEscalate},
			},
		}
	}
	chain := escalation.Chain{
		ID: "chain-42", Services: []string{"jellyfin"}, CostUSD: 2.5043,
		Outcome: escalation.OutcomeResolved, Reason: "tier 3 resolved the problem",
		Sessions: []escalation.Session{
			session(18, 0, 1, "haiku", 0.03, 45*time.Second),
			session(19, 18, 2, "sonnet", 0.0043, 1500*time.Millisecond),
			session(20, 18, 2, "sonnet", 0.47, 2*time.Minute),
			session(21, 20, 3, "opus", 2, 5*time.Minute),
		},
	}
	chain.Sessions[0].Continuity = escalation.ContinuityFresh
	chain.Sessions[1].Status, chain.Sessions[1].Verdict = escalation.SessionResumeFailed, nil
	chain.Sessions[2].Continuity = escalation.ContinuityHandoff
	chain.Sessions[3].Verdict = &escalation.Verdict{Status: escalation.VerdictResolved}
	chain.Sessions[3].ContinuityReason = escalation.ReasonInterrupted
	return chain
}

func TestWriteTree(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	fixedApp().writeTree(&b, climbed())
	writeLineage(&b, "Forward:", climbed().Sessions)
	requireGolden(t, "tree.txt", b.Bytes())
}

func TestSessionsThatWereLeftOutAreTold(t *testing.T) {
	t.Parallel()
	chain := climbed()
	require.Empty(t, earlierOf(chain))
	chain.Earlier = escalation.Earlier{Sessions: 1, CostUSD: 0.004}
	require.Equal(t, "… 1 earlier session, $0.0040: in the records", earlierOf(chain))

	chain.Earlier, chain.CostUSD = escalation.Earlier{Sessions: 40, CostUSD: 1.2}, chain.CostUSD+1.2
	var b bytes.Buffer
	fixedApp().writeTree(&b, chain)
	require.Contains(t, b.String(), "(jellyfin)\n… 40 earlier sessions, $1.20: in the records\n├── Session #18 ")
	require.Contains(t, b.String(), "Total: $3.70  more than 7m47s\n", "how long those took is not known here")

	model := watchModel{app: fixedApp(), seen: true, size: tea.WindowSizeMsg{Width: 80, Height: 24}}
	model.now.chain = chain
	require.Contains(t, model.overview(), "  … 40 earlier sessions, $1.20: in the records")
}

func TestWriteChains(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	writeChains(&b, nil)
	writeChains(&b, []chainRow{
		{ID: "chain-2", Status: "running", Tier: 2, Services: []string{"jellyfin", "postgres"}, CostUSD: 0.5},
		{ID: "chain-3", Status: "running", Gate: "open", Tier: 1, CostUSD: 0.02},
		{ID: "chain-4", Status: "terminated", Gate: "open", Tier: 1, CostUSD: 0.02},
		{ID: "chain-1", Status: "completed", Outcome: "healthy", Tier: 1, CostUSD: 0.0004},
	})
	requireGolden(t, "chains.txt", bytes.ReplaceAll(b.Bytes(), []byte(time.Time{}.Local().Format(time.DateTime)), []byte("0001-01-01 00:00:00")))
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0.0s": 0, "0.3s": 280 * time.Millisecond, "45s": 45 * time.Second, "7m45s": 7*time.Minute + 45*time.Second + 300*time.Millisecond,
	} {
		require.Equal(t, want, duration(d))
	}
}

func TestDollars(t *testing.T) {
	t.Parallel()
	for want, usd := range map[string]float64{"$0.00": 0, "$0.0004": 0.0004, "$0.03": 0.03, "$2.50": 2.5} {
		require.Equal(t, want, dollars(usd))
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	estimated := escalation.Report{CostUSD: 0.25, CostEstimated: true, Attempts: 1}
	for want, session := range map[string]escalation.Session{
		"$0.25":         {BudgetUSD: 2, Report: escalation.Report{CostUSD: 0.25}},
		"about $0.25":   {BudgetUSD: 2, Report: estimated},
		"at most $2.00": {BudgetUSD: 2, Report: escalation.Report{CostEstimated: true}},
		"unknown":       {Report: escalation.Report{CostEstimated: true}},
	} {
		require.Equal(t, want, costOf(&session))
	}
}

func TestPrintableDropsWhatATerminalObeys(t *testing.T) {
	t.Parallel()
	require.Equal(t, "red[31m and two lines", printable("red\x1b[31m and\ntwo\tlines\u202e", 80))
	require.Equal(t, "abc…", printable("abcdefgh", 4))
}

// requireGolden compares with a file in testdata; -update writes it.
func requireGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o700))
		require.NoError(t, os.WriteFile(file, got, 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

// TestTreeNamesAMissingSandbox shows a session that was to have one.
func TestTreeNamesAMissingSandbox(t *testing.T) {
	t.Parallel()
	for sandbox, named := range map[string]bool{
		"none: this kernel has no Landlock, which came with Linux 5.13": true, "landlock (ABI 7)": false, "off": false, "none at tier 3": false, "": false,
	} {
		session := escalation.Session{Report: escalation.Report{Sandbox: sandbox}}
		require.Equal(t, named, strings.Contains(contextOf(&session), ", no sandbox"), sandbox)
	}
}
