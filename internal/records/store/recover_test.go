package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// lostChain records a chain in s: a look, a repair that restarted a service, and a repair that runs. It returns the
// state that the chain has in Temporal.
func lostChain(t testing.TB, s *store.Store) escalation.Chain {
	t.Helper()
	wrong := completed(0.25)
	wrong.Verdict = &escalation.Verdict{Status: escalation.VerdictEscalate, Services: []string{"web"}, Summary: "it is slow"}
	look := mustOpen(t, s, opening("nightly", "look", 0))
	mustClose(t, s, "look", wrong, noon.Add(time.Minute))
	repaired := did("web", 1)
	repaired.Verdict.Status, repaired.Verdict.Services = escalation.VerdictEscalate, []string{"web"}
	session := repair("nightly", "restarted", noon.Add(2*time.Minute))
	session.ParentID = look.ID
	first := admit(t, s, session, about("web"), strict()).Session
	mustClose(t, s, "restarted", repaired, noon.Add(3*time.Minute))
	session = repair("nightly", "runs", noon.Add(4*time.Minute))
	session.ParentID = first.ID
	admit(t, s, session, about("web"), strict())
	events := []escalation.Event{event("nightly", "one"), event("nightly", "two")}
	require.NoError(t, s.AppendEvents(bounded(t), events))
	sessions, err := s.Chain(bounded(t), "nightly")
	require.NoError(t, err)
	return escalation.Chain{
		ID: "nightly", Services: []string{"web"}, MaxTier: escalation.TierFullRepair, StartedAt: noon, Sessions: sessions, Events: events,
		Incidents: []escalation.ChainIncident{{ID: "incident-1"}},
	}
}

// withoutNumbers returns sessions without the numbers of their records.
func withoutNumbers(sessions []escalation.Session) []escalation.Session {
	plain := make([]escalation.Session, len(sessions))
	for i, session := range sessions {
		session.ID, session.ParentID = 0, 0
		plain[i] = session
	}
	return plain
}

// testRecover recovers a chain in records from before the end of its first session. Since then, another session has got
// the number of a lost one.
func testRecover(t *testing.T, database backend) {
	complete, s := database(t)(), database(t)()
	chain := lostChain(t, complete)
	mustOpen(t, s, opening("nightly", "look", 0))
	later := opening("other", "new", 0)
	later.StartedAt = noon.Add(time.Hour)
	other := mustOpen(t, s, later)
	require.Equal(t, chain.Sessions[1].ID, other.ID)

	next := opening("nightly", "next", chain.Sessions[1].ID)
	for _, request := range []escalation.AdmissionRequest{{Previous: "look"}, {Previous: "restarted"}, {Parent: "restarted"}} {
		_, err := s.OpenSession(bounded(t), next, request, lenient())
		require.ErrorIs(t, err, store.ErrNotFound, "%+v", request)
	}

	recovered, err := s.Recover(bounded(t), chain)
	require.NoError(t, err)
	require.Equal(t, store.Recovered{Sessions: 3, CostUSD: 0.75}, recovered)
	got, err := s.Chain(bounded(t), "nightly")
	require.NoError(t, err)
	require.Equal(t, withoutNumbers(chain.Sessions), withoutNumbers(got))
	line, err := s.Backward(bounded(t), got[2].ID)
	require.NoError(t, err)
	require.Equal(t, []escalation.Session{got[2], got[1], got[0]}, line)
	events, err := s.Events(bounded(t), "nightly")
	require.NoError(t, err)
	require.Equal(t, chain.Events, events)
	require.Equal(t, ledger(t, complete, time.Time{}, "web"), ledger(t, s, time.Time{}, "web"))
	require.Equal(t, locks(t, complete), locks(t, s), "a repair that runs has its lock again")
	incidents, err := s.Incidents(bounded(t), store.IncidentFilter{})
	require.NoError(t, err)
	require.Len(t, incidents, 1)
	require.Equal(t, "nightly", incidents[0].Chains[0].ChainID)
	require.InDelta(t, 0.75, incidents[0].CostUSD, 1e-9)

	again, err := s.Recover(bounded(t), chain)
	require.NoError(t, err)
	require.Zero(t, again, "nothing is recorded twice")
	opened := admit(t, s, next, escalation.AdmissionRequest{Previous: "restarted", Parent: "restarted"}, lenient())
	require.Equal(t, got[1].ID, opened.Session.ParentID, "not the session that has the old number")

	for parent, want := range map[int64]int64{got[0].ID: got[0].ID, other.ID: 0, 99: 0} { // other began later than its child
		child := opening("child", fmt.Sprint("child of ", parent), parent)
		child.ID, child.Sequence, child.Status = 100+parent, 1, escalation.SessionRunning
		_, err := s.Recover(bounded(t), escalation.Chain{ID: "child", Sessions: []escalation.Session{child}})
		require.NoError(t, err)
		recorded, err := s.BySessionID(bounded(t), child.SessionID)
		require.NoError(t, err)
		require.Equal(t, want, recorded.ParentID)
	}
}

// testRecoverSettled recovers a session that a sweep has closed, because its chain had ended.
func testRecoverSettled(t *testing.T, database backend) {
	chain := lostChain(t, database(t)())
	s := database(t)()
	mustOpen(t, s, opening("nightly", "look", 0))
	settled, err := s.SettleSession(bounded(t), "look", escalation.Report{Status: escalation.SessionFailed, Cost: escalation.Cost{CostEstimated: true}}, noon.Add(time.Hour))
	require.NoError(t, err)
	require.True(t, settled)

	chain.Sessions = chain.Sessions[:1]
	for _, want := range []store.Recovered{{Sessions: 1, CostUSD: 0.25}, {}} {
		recovered, err := s.Recover(bounded(t), chain)
		require.NoError(t, err)
		require.Equal(t, want, recovered)
		got, err := s.Chain(bounded(t), "nightly")
		require.NoError(t, err)
		require.Equal(t, chain.Sessions, got)
	}
}

// testRecoverProgress recovers a chain that repaired at the time of the backup. Now it waits at a gate, or has ended.
// Its incident says so, and its service is free.
func testRecoverProgress(t *testing.T, database backend) {
	chain := lostChain(t, database(t)())
	chain.Sessions = chain.Sessions[:2]
	waits, ends := chain, chain
	waits.Gates = []escalation.Gate{{ID: "gate-1", Rule: escalation.RuleVerdict, Reason: "a person is needed", OpenedAt: noon.Add(time.Hour), ExpiresAt: noon.Add(2 * time.Hour)}}
	ends.Outcome, ends.EndedAt = escalation.OutcomeAborted, noon.Add(time.Hour)
	for status, state := range map[escalation.ChainStatus]escalation.Chain{escalation.ChainWaiting: waits, escalation.ChainEnded: ends} {
		s := database(t)()
		mustOpen(t, s, opening("nightly", "look", 0))
		admit(t, s, repair("nightly", "restarted", noon.Add(2*time.Minute)), about("web"), strict())
		require.Len(t, locks(t, s), 1)
		_, err := s.Recover(bounded(t), state)
		require.NoError(t, err)
		incidents, err := s.Incidents(bounded(t), store.IncidentFilter{})
		require.NoError(t, err)
		require.Len(t, incidents, 1)
		progress := incidents[0].Chains[0].ChainProgress
		require.Equal(t, status, progress.Status)
		require.Equal(t, state.Outcome, progress.Outcome)
		require.Equal(t, escalation.TierFullRepair, progress.MaxTier)
		require.Empty(t, locks(t, s))
	}
}

// testSkipNumbers checks that new sessions and incidents do not get the numbers of lost ones.
func testSkipNumbers(t *testing.T, database backend) {
	s := database(t)()
	lost := escalation.Chain{Sessions: []escalation.Session{{ID: 17}}, Incidents: []escalation.ChainIncident{{ID: "incident-7"}, {ID: "none"}}}
	for range 2 {
		require.NoError(t, s.SkipNumbers(bounded(t), []escalation.Chain{lost, {}}))
	}
	require.Equal(t, int64(18), mustOpen(t, s, opening("nightly", "look", 0)).ID)
	require.NoError(t, s.SkipNumbers(bounded(t), []escalation.Chain{{Sessions: []escalation.Session{{ID: 3}}}}))
	require.Equal(t, int64(19), mustOpen(t, s, opening("nightly", "again", 0)).ID)
	wrong := completed(0.25)
	wrong.Verdict = &escalation.Verdict{Status: escalation.VerdictEscalate, Services: []string{"web"}, Summary: "it is slow"}
	mustClose(t, s, "again", wrong, noon)
	_, err := s.Incident(bounded(t), "incident-8")
	require.NoError(t, err)
}

// testRecoverCooldown recovers a chain that ended because of a cooldown, and whose sessions the records have. Nobody
// takes care of its fault after that, because the cooldown passes.
func testRecoverCooldown(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("nightly", "look", 0))
	found := finds(escalation.VerdictEscalate, "down", "web")
	mustClose(t, s, "look", escalation.Report{Status: escalation.SessionCompleted, Attempts: 1, Verdict: &found}, noon.Add(time.Minute))
	chain := escalation.Chain{ID: "nightly", MaxTier: escalation.TierFullRepair, Outcome: escalation.OutcomeNeedsHuman, EndedAt: noon.Add(time.Hour), Rule: escalation.RuleCooldown}
	sessions, err := s.Chain(bounded(t), "nightly")
	require.NoError(t, err)
	chain.Sessions = sessions
	recovered, err := s.Recover(bounded(t), chain)
	require.NoError(t, err)
	require.Zero(t, recovered.Sessions)
	incident, err := s.Incident(bounded(t), "incident-1")
	require.NoError(t, err)
	require.Equal(t, escalation.ChainEnded, incident.Chains[0].Status, "although no session was missing")
	require.Equal(t, escalation.RuleCooldown, incident.Chains[0].Rule)
	_, handled := incident.Handler(escalation.ChainRun{ChainID: "look"}, noon.Add(2*time.Hour))
	require.False(t, handled)

	chain.Outcome, chain.EndedAt = escalation.OutcomeAborted, noon.Add(time.Minute)
	_, err = s.Recover(bounded(t), chain)
	require.NoError(t, err)
	incident, err = s.Incident(bounded(t), "incident-1")
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeNeedsHuman, incident.Chains[0].Outcome, "what is recorded is newer")
}

// testRecoverHealed recovers a look that found incident-1 healed. In the restored records another incident has that
// number.
func testRecoverHealed(t *testing.T, database backend) {
	s := database(t)()
	later := opening("weekly", "newer", 0)
	later.StartedAt = noon.Add(2 * time.Hour)
	mustOpen(t, s, later)
	found := finds(escalation.VerdictEscalate, "down", "db")
	mustClose(t, s, "newer", escalation.Report{Status: escalation.SessionCompleted, Attempts: 1, Verdict: &found}, noon.Add(2*time.Hour))

	lost := opening("nightly", "look", 0)
	lost.Sequence, lost.EndedAt, lost.FirstRunID = 1, noon.Add(5*time.Minute), "run"
	lost.Report = escalation.Report{Status: escalation.SessionCompleted, Attempts: 1, Verdict: &escalation.Verdict{
		Status: escalation.VerdictHealthy, Known: []escalation.KnownIncident{{ID: "incident-1", Status: escalation.IncidentGone}},
	}}
	_, err := s.Recover(bounded(t), escalation.Chain{ID: "nightly", Sessions: []escalation.Session{lost}})
	require.NoError(t, err)
	incident, err := s.Incident(bounded(t), "incident-1")
	require.NoError(t, err)
	require.True(t, incident.ResolvedAt.IsZero())
}
