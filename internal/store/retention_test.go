package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/store"
)

// oldChains returns the IDs of the chains that may be removed.
func oldChains(t testing.TB, s *store.Store, before time.Time) (ids []string) {
	t.Helper()
	found, err := s.OldChains(bounded(t), before, "")
	require.NoError(t, err)
	for _, chain := range found {
		ids = append(ids, chain.ChainID)
	}
	return ids
}

func testOldChains(t *testing.T, database backend) {
	readers := database(t)()
	s, other := readers.In(here), readers.In(there)
	before := noon.Add(time.Hour)
	wrong := completed(0.1)
	wrong.Verdict = &escalation.Verdict{Status: escalation.VerdictEscalate, Services: []string{"web"}, Summary: "it is slow"}

	parent := mustOpen(t, s, opening("continued", "continued", 0))
	for _, chain := range []string{"fault", "open", "reset", "young"} {
		mustOpen(t, s, opening(chain, chain, 0))
	}
	mustOpen(t, s, opening("child", "child", parent.ID))
	mustOpen(t, other, opening("old", "old elsewhere", 0))
	admit(t, s, repair("locked", "locked", noon), about("db"), strict())
	admit(t, s, repair("old", "old", noon), about("nas"), strict())
	require.NoError(t, s.ReleaseServices(bounded(t), "old"))
	for _, session := range []string{"continued", "old elsewhere", "locked"} {
		mustClose(t, readers, session, completed(0.1), noon)
	}
	mustClose(t, s, "old", did("nas", 1), noon)
	mustClose(t, s, "old", did("nas", 2), noon)
	mustClose(t, s, "reset", completed(0.1), noon)
	mustClose(t, s, "fault", wrong, noon)
	mustClose(t, s, "young", completed(0.1), before)
	mustClose(t, s, "child", completed(0.1), before)
	require.NoError(t, s.AppendEvents(bounded(t), []escalation.Event{event("old", "1"), event("audited", "2"), event("old", "3")}))
	require.NoError(t, other.AppendEvents(bounded(t), []escalation.Event{event("old", "4")}))
	require.NoError(t, s.AppendDecisions(bounded(t), []escalation.CallDecision{decision("old", "old", "1"), decision("old", "old elsewhere", "2")}))

	require.Equal(t, []string{"audited", "old", "reset"}, oldChains(t, s, before))
	found, err := s.OldChains(bounded(t), before, "audited")
	require.NoError(t, err)
	require.Equal(t, []store.OldChain{{ChainID: "old", SessionIDs: []string{"old"}}, {ChainID: "reset", SessionIDs: []string{"reset"}}}, found)

	// A new run of a chain begins after the look.
	again := opening("reset", "reset again", 0)
	again.StartedAt = before
	mustOpen(t, s, again)
	for chain, want := range map[string]bool{"audited": true, "old": true, "reset": false, "open": false, "unknown": false} {
		_, did, err := s.RemoveChain(bounded(t), chain, before)
		require.NoError(t, err)
		require.Equal(t, want, did, chain)
	}
	require.Empty(t, oldChains(t, s, before))
	left, err := readers.Chain(bounded(t), "old")
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, there.ID, left[0].NamespaceID)
	events, err := readers.Events(bounded(t), "old")
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Len(t, decisions(t, readers, "old"), 1)
	entries, err := readers.Ledger(bounded(t), time.Time{})
	require.NoError(t, err)
	require.Empty(t, entries)
	require.Empty(t, replaced(t, readers, "old"))

	// When the records of the child are removed, the records of its parent can be removed, too.
	muchLater := before.Add(time.Hour)
	require.Equal(t, []string{"child", "young"}, oldChains(t, s, muchLater))
	removed, did, err := s.RemoveChain(bounded(t), "child", muchLater)
	require.NoError(t, err)
	require.True(t, did)
	require.Equal(t, store.Removed{Sessions: 1}, removed)
	require.Equal(t, []string{"continued", "young"}, oldChains(t, s, muchLater))
}

func testOldIncidents(t *testing.T, database backend) {
	s := database(t)().In(here)
	wrong := completed(0.1)
	wrong.Verdict = &escalation.Verdict{Status: escalation.VerdictEscalate, Services: []string{"web"}, Summary: "it is slow"}
	mustOpen(t, s, opening("chain", "a", 0))
	mustClose(t, s, "a", wrong, noon)
	require.NoError(t, s.RecordDelivery(bounded(t), "key", "ntfy-1", noon))
	before := noon.Add(time.Hour)
	remove := func(want int64) {
		t.Helper()
		got, err := s.RemoveIncidents(bounded(t), before)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	remove(0)
	delivered, err := s.Delivered(bounded(t), "key")
	require.NoError(t, err)
	require.Empty(t, delivered)
	_, err = s.CloseIncident(bounded(t), "incident-1", store.IncidentClosing{Actor: "ada", At: noon})
	require.NoError(t, err)
	remove(0)
	require.Empty(t, oldChains(t, s, before), "its chain is still at work on it")
	require.NoError(t, s.RecordProgress(bounded(t), escalation.ChainRun{ChainID: "chain"}, escalation.ChainProgress{Status: escalation.ChainEnded, At: noon}))
	remove(1)
	_, err = s.Incident(bounded(t), "incident-1")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Equal(t, []string{"chain"}, oldChains(t, s, before))
}

func testDuties(t *testing.T, database backend) {
	s := database(t)()
	claim := func(holder string, now, until time.Time) bool {
		t.Helper()
		claimed, err := s.ClaimDuty(bounded(t), "cleaning", holder, now, until)
		require.NoError(t, err)
		return claimed
	}
	later := noon.Add(time.Hour)
	require.True(t, claim("a", noon, later))
	require.False(t, claim("b", noon, later.Add(time.Hour)))
	require.True(t, claim("a", noon, later.Add(time.Minute)), "its holder may go on")
	require.False(t, claim("b", later, later.Add(time.Hour)))
	require.True(t, claim("b", later.Add(time.Minute), later.Add(time.Hour)))
	require.False(t, claim("a", later.Add(time.Minute), later.Add(time.Hour)))

	jumped := noon.AddDate(1, 0, 0) // b's clock jumps forward, and b is gone
	require.True(t, claim("b", jumped, jumped.Add(time.Minute)))
	require.True(t, claim("a", later.Add(time.Hour), later.Add(time.Hour+time.Minute)))
}
