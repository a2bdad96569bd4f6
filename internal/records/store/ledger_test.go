package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// ledger returns the ledger entries after since for the given services, or for all services if none is given.
func ledger(t testing.TB, s *store.Store, since time.Time, services ...string) []escalation.LedgerEntry {
	t.Helper()
	entries, err := s.Ledger(bounded(t), since)
	require.NoError(t, err)
	return slices.DeleteFunc(entries, func(entry escalation.LedgerEntry) bool {
		return len(services) > 0 && !slices.Contains(services, entry.Service)
	})
}

func testLedger(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "a", 0))
	mustOpen(t, s, opening("other", "b", 0))
	report := completed(1)
	report.Verdict.Actions = []escalation.Action{
		{Kind: escalation.ActionOther, Service: "web"},
		{Kind: escalation.ActionRestart, Service: "web", Succeeded: true},
		{Kind: escalation.ActionRedeployment, Service: "db"},
	}
	mustClose(t, s, "a", report, noon)
	mustClose(t, s, "b", did("web", 1), noon.Add(time.Hour))
	restart := escalation.LedgerEntry{
		Service: "web", Kind: escalation.ActionRestart, At: noon, ChainID: "chain", SessionID: "a", Succeeded: true,
	}
	redeployment := escalation.LedgerEntry{
		Service: "db", Kind: escalation.ActionRedeployment, At: noon, ChainID: "chain", SessionID: "a",
	}
	later := escalation.LedgerEntry{
		Service: "web", Kind: escalation.ActionRestart, At: noon.Add(time.Hour), ChainID: "other", SessionID: "b", Succeeded: true,
	}
	before := noon.Add(-time.Millisecond)
	require.Equal(t, []escalation.LedgerEntry{restart, redeployment, later}, ledger(t, s, before))
	require.Equal(t, []escalation.LedgerEntry{later}, ledger(t, s, noon), "what is later than that")
	require.Empty(t, ledger(t, s, noon.Add(time.Hour)))
}

func testLedgerOfReports(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "a", 0))
	count := func() int { return len(ledger(t, s, time.Time{})) }
	for i, step := range []struct {
		report escalation.Report
		want   int
		why    string
	}{
		{did("web", 2), 2, "every action counts"},
		{did("web", 2), 2, "a repetition adds none"},
		{did("web", 1), 2, "what was told once stays"},
		{did("web", 3), 3, "and what is new is added"},
		{did("db", 1), 4, "for each service"},
		{did("web", 3), 4, "a late retry of an earlier report adds none"},
		{escalation.Report{Status: escalation.SessionFailed}, 4, "no verdict"},
	} {
		mustClose(t, s, "a", step.report, noon.Add(time.Duration(i)*time.Hour))
		require.Equal(t, step.want, count(), step.why)
	}
	require.Equal(t, noon, ledger(t, s, time.Time{})[1].At, "the time is that of the first report")
}
