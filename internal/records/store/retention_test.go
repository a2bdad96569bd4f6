package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/internal/records/store"
)

// oldChains returns the IDs of the chains that may be removed.
func oldChains(t testing.TB, s *store.Store, before time.Time) (ids []string) {
	t.Helper()
	found, err := s.OldChains(bounded(t), before, escalation.ChainRun{})
	require.NoError(t, err)
	for _, chain := range found {
		ids = append(ids, chain.ChainID)
	}
	return ids
}

// run returns a chain that no other one shares its ID with.
func run(chainID string) escalation.ChainRun { return escalation.ChainRun{ChainID: chainID} }

func testOldChains(t *testing.T, database backend) {
	s := database(t)()
	before := noon.Add(time.Hour)
	wrong := completed(0.1)
	wrong.Verdict = &escalation.Verdict{Status: escalation.VerdictEscalate, Services: []string{"web"}, Summary: "it is slow"}

	parent := mustOpen(t, s, opening("continued", "continued", 0))
	for _, chain := range []string{"fault", "open", "reset", "young"} {
		mustOpen(t, s, opening(chain, chain, 0))
	}
	mustOpen(t, s, opening("child", "child", parent.ID))
	admit(t, s, repair("locked", "locked", noon), about("db"), strict())
	admit(t, s, repair("old", "old", noon), about("nas"), strict())
	require.NoError(t, s.ReleaseServices(bounded(t), "old"))
	for _, session := range []string{"continued", "locked"} {
		mustClose(t, s, session, completed(0.1), noon)
	}
	mustClose(t, s, "old", did("nas", 1), noon)
	mustClose(t, s, "old", did("nas", 2), noon)
	mustClose(t, s, "reset", completed(0.1), noon)
	mustClose(t, s, "fault", wrong, noon)
	mustClose(t, s, "young", completed(0.1), before)
	mustClose(t, s, "child", completed(0.1), before)
	require.NoError(t, s.AppendEvents(bounded(t), []escalation.Event{event("old", "1"), event("audited", "2"), event("old", "3")}))
	require.NoError(t, s.AppendDecisions(bounded(t), []escalation.CallDecision{decision("old", "old", "1")}))

	require.Equal(t, []string{"audited", "old", "reset"}, oldChains(t, s, before))
	found, err := s.OldChains(bounded(t), before, run("audited"))
	require.NoError(t, err)
	require.Equal(t, []store.OldChain{
		{ChainRun: run("old"), SessionIDs: []string{"old"}}, {ChainRun: run("reset"), SessionIDs: []string{"reset"}},
	}, found)

	// A new run of a chain begins after the look.
	again := opening("reset", "reset again", 0)
	again.StartedAt = before
	mustOpen(t, s, again)
	for chain, want := range map[string]bool{"audited": true, "old": true, "reset": false, "open": false, "unknown": false} {
		_, did, err := s.RemoveChain(bounded(t), run(chain), before)
		require.NoError(t, err)
		require.Equal(t, want, did, chain)
	}
	require.Empty(t, oldChains(t, s, before))
	left, err := s.Chain(bounded(t), "old")
	require.NoError(t, err)
	require.Empty(t, left)
	events, err := s.Events(bounded(t), "old")
	require.NoError(t, err)
	require.Empty(t, events)
	require.Empty(t, decisions(t, s, "old"))
	entries, err := s.Ledger(bounded(t), time.Time{})
	require.NoError(t, err)
	require.Empty(t, entries)
	require.Empty(t, replaced(t, s, "old"))

	// When the records of the child are removed, the records of its parent can be removed, too.
	muchLater := before.Add(time.Hour)
	require.Equal(t, []string{"child", "young"}, oldChains(t, s, muchLater))
	removed, did, err := s.RemoveChain(bounded(t), run("child"), muchLater)
	require.NoError(t, err)
	require.True(t, did)
	require.Equal(t, store.Removed{Sessions: 1}, removed)
	require.Equal(t, []string{"continued", "young"}, oldChains(t, s, muchLater))
}

func testOldIncidents(t *testing.T, database backend) {
	s := database(t)()
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

// testOldRuns checks that of several chains with one ID the old ones are removed, and only they: each with its own
// events.
func testOldRuns(t *testing.T, database backend) {
	s := database(t)()
	before := noon.Add(time.Hour)
	runs := map[string]time.Time{"run-1": noon, "run-2": noon.Add(time.Minute), "run-3": before}
	for _, id := range []string{"run-1", "run-2", "run-3"} {
		session := opening("nightly", "s "+id, 0)
		session.FirstRunID, session.StartedAt = id, runs[id]
		mustOpen(t, s, session)
		mustClose(t, s, session.SessionID, completed(1), runs[id])
		e := event("nightly", id)
		e.FirstRunID, e.At = id, runs[id]
		require.NoError(t, s.AppendEvents(bounded(t), []escalation.Event{e}))
	}
	found, err := s.OldChains(bounded(t), before, escalation.ChainRun{})
	require.NoError(t, err)
	require.Equal(t, []store.OldChain{
		{ChainRun: escalation.ChainRun{ChainID: "nightly", FirstRunID: "run-1"}, SessionIDs: []string{"s run-1"}},
		{ChainRun: escalation.ChainRun{ChainID: "nightly", FirstRunID: "run-2"}, SessionIDs: []string{"s run-2"}},
	}, found)
	after, err := s.OldChains(bounded(t), before, found[0].ChainRun)
	require.NoError(t, err)
	require.Equal(t, found[1:], after)
	removed, did, err := s.RemoveChain(bounded(t), found[0].ChainRun, before)
	require.NoError(t, err)
	require.True(t, did)
	require.Equal(t, store.Removed{Sessions: 1, Events: 1}, removed)
	_, did, err = s.RemoveChain(bounded(t), escalation.ChainRun{ChainID: "nightly", FirstRunID: "run-3"}, before)
	require.NoError(t, err)
	require.False(t, did)
	left, err := s.Chain(bounded(t), "nightly")
	require.NoError(t, err)
	require.Len(t, left, 2)
	events, err := s.Events(bounded(t), "nightly")
	require.NoError(t, err)
	require.Len(t, events, 2)
}

// sums adds up costs in each of their groupings.
func sums(t *testing.T, costs store.Costs) (all store.Spending) {
	t.Helper()
	add := func(to *store.Spending, more store.Spending) {
		to.Sessions += more.Sessions
		to.USD += more.USD
		to.EstimatedUSD += more.EstimatedUSD
		to.UnknownUSD += more.UnknownUSD
	}
	for _, one := range costs.Quarters {
		add(&all, one.Spending)
	}
	var kinds store.Spending
	for _, one := range costs.Kinds {
		add(&kinds, one.Spending)
	}
	require.Equal(t, all, kinds)
	return all
}

// testRemovedCosts checks that budgets and reports count what a session has cost after its records were removed,
// although they were removed on the same day. Nothing else of the session stays.
func testRemovedCosts(t *testing.T, database backend) {
	s := database(t)()
	record := func(session escalation.Session, reports ...escalation.Report) {
		t.Helper()
		policy := lenient()
		policy.Tiers[session.Tier-1].BudgetUSD = 8
		_, err := s.OpenSession(bounded(t), session, escalation.AdmissionRequest{}, policy)
		require.NoError(t, err)
		for _, report := range reports {
			mustClose(t, s, session.SessionID, report, noon)
		}
		require.NoError(t, s.AppendDecisions(bounded(t), []escalation.CallDecision{decision(session.ChainID, session.SessionID, session.SessionID)}))
		_, err = s.RecallMemories(bounded(t), memory.Recall{ChainID: session.ChainID, SessionID: session.SessionID, Text: "port"})
		require.NoError(t, err)
	}
	_, err := s.AddMemory(bounded(t), escalation.MemoryProposal{Kind: escalation.MemoryDiscovery, Subject: "port", Text: "It listens on port 1."},
		store.MemoryAct{Actor: "ada", At: noon})
	require.NoError(t, err)
	estimated := escalation.Report{Status: escalation.SessionFailed, Cost: escalation.Cost{CostUSD: 0.25, CostEstimated: true}, Attempts: 1}
	lost := escalation.Report{Status: escalation.SessionFailed, Cost: escalation.Cost{CostUSD: 0.5, CostEstimated: true}}
	turn := func(id string, at time.Time) escalation.Session {
		session := opening("conversation-ada", id, 0)
		session.Purpose, session.StartedAt = escalation.PurposeTalk, at
		return session
	}
	record(opening("healthy", "healthy", 0), completed(1))
	record(turn("replaced", noon), estimated, completed(2))
	record(turn("lost", noon), lost)
	record(opening("chain", "of a chain", 0), completed(4))
	record(turn("next", noon.Add(25*time.Hour)), completed(16))
	from, to := noon.Truncate(24*time.Hour), noon.Truncate(24*time.Hour).Add(48*time.Hour)
	read := func() (store.Spending, store.DaySpending) {
		t.Helper()
		costs, err := s.Costs(bounded(t), from, to)
		require.NoError(t, err)
		day, err := s.DaySpending(bounded(t), noon)
		require.NoError(t, err)
		return sums(t, costs), day
	}
	spent, day := read()
	require.Equal(t, store.Spending{Sessions: 5, USD: 1 + 2.25 + 0.5 + 4 + 16, EstimatedUSD: 0.75, UnknownUSD: 7.5}, spent)
	require.Equal(t, store.DaySpending{SpentUSD: 1 + 2.25 + 8 + 4, Estimated: true}, day)

	for _, chain := range []string{"healthy", "chain"} {
		_, did, err := s.RemoveChain(bounded(t), run(chain), noon.Add(time.Hour))
		require.NoError(t, err)
		require.True(t, did, chain)
	}
	for _, session := range []string{"replaced", "lost", "lost"} { // once more changes nothing
		require.NoError(t, s.RemoveTalkSession(bounded(t), session))
	}
	stillSpent, stillDay := read()
	require.Equal(t, spent, stillSpent)
	require.Equal(t, day, stillDay)
	require.Equal(t, map[string]int64{"calls": 1, "memory_uses": 1, "sessions": 1, "replaced_reports": 0, "ledger": 0, "removed_costs": 2},
		store.CountRows(t, s, "calls", "memory_uses", "sessions", "replaced_reports", "ledger", "removed_costs"))

	// A year later one row a day and kind is left of these costs, and of those of the next day, however many quarters
	// of an hour have some.
	for i := range 8 {
		record(turn(fmt.Sprint("later ", i), noon.Add(time.Duration(i-3)*time.Hour)), completed(0.5))
		require.NoError(t, s.RemoveTalkSession(bounded(t), fmt.Sprint("later ", i)))
	}
	spent, _ = read()
	old := store.CountRows(t, s, "removed_costs")["removed_costs"]
	for range 2 { // once more changes nothing
		require.NoError(t, s.CompactCosts(bounded(t), noon.AddDate(0, 0, 399)))
		require.Equal(t, old, store.CountRows(t, s, "removed_costs")["removed_costs"])
	}
	for range 2 {
		require.NoError(t, s.CompactCosts(bounded(t), noon.AddDate(0, 0, 401)))
		require.Less(t, store.CountRows(t, s, "removed_costs")["removed_costs"], int64(5))
		stillSpent, _ = read()
		require.InDelta(t, spent.USD, stillSpent.USD, 1e-9)
		stillSpent.USD = spent.USD
		require.Equal(t, spent, stillSpent)
	}
}

// testTrustClock checks that a clock that has jumped ahead is not trusted before it has gone on for a day.
func testTrustClock(t *testing.T, database backend) {
	s := database(t)()
	ask := func(s *store.Store, at time.Time, want bool) {
		t.Helper()
		trusted, _, err := s.TrustClock(bounded(t), at)
		require.NoError(t, err)
		require.Equal(t, want, trusted)
	}
	ask(s, noon, true)
	ask(s, noon.Add(time.Hour), true)
	ahead := noon.AddDate(5, 0, 0)
	ask(s, ahead, false)
	ask(s, ahead.Add(23*time.Hour), false)
	ask(s, noon.Add(2*time.Hour), true) // the network has set the clock
	ask(s, ahead.Add(30*time.Hour), false)
	ask(s, ahead.Add(55*time.Hour), true) // nobody has, for a day
	ask(s, ahead.Add(56*time.Hour), true)
	ask(s, noon.Add(3*time.Hour), true) // it was wrong nevertheless
	ask(s, noon.Add(4*time.Hour), true)
	ask(s, noon.AddDate(0, 0, 7), false) // a laptop that runs on Mondays
	ask(s, noon.AddDate(0, 0, 14), true)

	fresh := database(t)()
	mustOpen(t, fresh, opening("chain", "session", 0))
	_, last, err := fresh.TrustClock(bounded(t), ahead)
	require.NoError(t, err)
	require.Equal(t, noon, last)
	ask(fresh, ahead, false)
	ask(fresh, noon.AddDate(0, 0, 1), true)
}
