package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

// failed records a look of a chain at scope that ended without a verdict.
func (c *incidentChains) failed(chainID string, status escalation.SessionStatus, scope ...string) {
	c.t.Helper()
	c.begin(chainID, scope...)
	report := escalation.Report{Status: status, Attempts: 1, Error: "the key has expired"}
	require.NoError(c.t, c.s.CloseSession(bounded(c.t), chainID+"/failed", report, c.at.Add(time.Minute)))
}

// begin opens a look of a chain at scope, an hour after the session before.
func (c *incidentChains) begin(chainID string, scope ...string) escalation.AdmissionResult {
	c.t.Helper()
	c.at = c.at.Add(time.Hour)
	session := opening(chainID, chainID+"/failed", 0)
	session.Tier, session.StartedAt, session.FirstRunID, session.Scope = 1, c.at, c.run, scope
	opened, err := c.s.OpenSession(bounded(c.t), session, escalation.AdmissionRequest{Services: scope}, lenient())
	require.NoError(c.t, err)
	return opened
}

// testFailedLooks follows an incident of looks that fail from the first one to the first look with a result.
func testFailedLooks(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("old", 1, finds(escalation.VerdictEscalate, "down", "web"))
	c.failed("first", escalation.SessionFailed)
	require.Len(t, c.open(), 2)
	incident := c.incident("incident-2")
	require.Equal(t, escalation.KindLookFailed, incident.Kind)
	require.Equal(t, "tier 1 ended without a verdict (failed): the key has expired", incident.Summary)
	require.Empty(t, incident.Services)
	require.Equal(t, "first", incident.Chains[0].ChainID)
	c.progress("first", escalation.ChainProgress{Status: escalation.ChainWaiting, Rule: escalation.RuleNoVerdict, At: c.at})

	c.failed("second", escalation.SessionTimedOut, "web")
	c.progress("second", escalation.ChainProgress{Status: escalation.ChainEnded, At: c.at, Leaves: []string{incident.ID}})
	incident = c.incident(incident.ID)
	require.Empty(t, incident.Services, "it is about all services")
	require.Len(t, incident.Chains, 1)
	require.Equal(t, c.at.Add(time.Minute), incident.LastSeenAt)
	require.Zero(t, incident.WorseAt)

	c.ran("third", 2, finds(escalation.VerdictResolved, "", "web"))
	require.Equal(t, incident.ID, c.open()[0].ID, "a repair is no look")
	c.ran("fourth", 1, finds(escalation.VerdictEscalate, "down", "web"))
	incident = c.incident(incident.ID)
	require.Equal(t, escalation.IncidentHealed, incident.Resolution, "this look has a result")
	require.Equal(t, "fourth", incident.ResolvedBy)
	_, healed, err := c.s.ChainIncidents(bounded(t), escalation.ChainRun{ChainID: "fourth"}, "fourth/"+c.at.String())
	require.NoError(t, err)
	require.Len(t, healed, 1)
	require.Equal(t, escalation.ChainWaiting, healed[0].Chains[0].Status, "the chain that waits is told")

	c.failed("fifth", escalation.SessionBudgetExhausted)
	incident = c.incident(incident.ID)
	require.Equal(t, 1, incident.Returned)
	require.Empty(t, incident.Returns, "nobody had repaired it")
	require.Contains(t, incident.Summary, "budget used up")
}

// testLookedSince checks that a chain whose look failed no longer takes care of failed looks after it could look,
// although it waits because of what it found.
func testLookedSince(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	waits := func() {
		t.Helper()
		c.progress("first", escalation.ChainProgress{Status: escalation.ChainWaiting, At: c.at, Until: c.at.Add(72 * time.Hour)})
	}
	handled := func(id string) bool {
		t.Helper()
		incident := c.incident(id)
		_, handled := incident.Handler(escalation.ChainRun{ChainID: "look"}, c.at)
		return handled
	}
	c.failed("first", escalation.SessionFailed)
	waits()
	c.ran("second", 1, healthy())
	require.Equal(t, escalation.IncidentHealed, c.incident("incident-1").Resolution)
	require.True(t, handled("incident-1"), "it has not looked yet")
	c.ran("first", 1, finds(escalation.VerdictNeedsHuman, "down", "web"))
	waits()
	require.False(t, handled("incident-1"))
	require.True(t, handled("incident-2"))
}

// testNoFailedLook checks which looks without a verdict open no incident: a person has stopped the chain, or nobody
// knows how the look ended.
func testNoFailedLook(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.failed("cancelled", escalation.SessionStopped)
	c.failed("resumed", escalation.SessionResumeFailed)
	c.begin("terminated")
	report := escalation.Report{Status: escalation.SessionFailed, Error: "its chain ended without closing it: terminated", Cost: escalation.Cost{CostEstimated: true}}
	settled, err := c.s.SettleSession(bounded(t), "terminated/failed", report, c.at.Add(time.Minute))
	require.NoError(t, err)
	require.True(t, settled)
	require.Empty(t, c.open())
}

// testBriefWithoutFailedLooks checks that no agent is told of looks that failed.
func testBriefWithoutFailedLooks(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.failed("first", escalation.SessionFailed, "web")
	require.Empty(t, c.begin("second", "web").Incidents)
	repair := opening("first", "first/repair", 0)
	repair.Tier, repair.StartedAt = 2, c.at.Add(time.Hour)
	opened, err := c.s.OpenSession(bounded(t), repair, escalation.AdmissionRequest{Services: []string{"web"}}, lenient())
	require.NoError(t, err)
	require.Empty(t, opened.Incidents)
	require.Equal(t, escalation.IncidentRepairing, c.incident("incident-1").State)
}
