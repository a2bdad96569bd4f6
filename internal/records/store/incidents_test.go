package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// incidentChains opens and closes the sessions of chains, with an hour between two sessions.
type incidentChains struct {
	t  *testing.T
	s  *store.Store
	at time.Time
	// run is the first run ID of the chains.
	run string
}

func newIncidentChains(t *testing.T, database backend) *incidentChains {
	return &incidentChains{t: t, s: database(t)(), at: noon}
}

// ran records a session of a chain that ended with this verdict, and returns its report.
func (c *incidentChains) ran(chainID string, tier escalation.Tier, verdict escalation.Verdict) escalation.Report {
	c.t.Helper()
	c.at = c.at.Add(time.Hour)
	session := opening(chainID, chainID+"/"+c.at.String(), 0)
	session.Tier, session.StartedAt, session.FirstRunID = tier, c.at, c.run
	request := escalation.AdmissionRequest{Services: verdict.Services}
	opened, err := c.s.OpenSession(bounded(c.t), session, request, lenient())
	require.NoError(c.t, err)
	require.Nil(c.t, opened.Refusal)
	report := escalation.Report{Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.5}, Attempts: 1, Verdict: &verdict}
	require.NoError(c.t, c.s.CloseSession(bounded(c.t), session.SessionID, report, c.at.Add(time.Minute)))
	require.NoError(c.t, c.s.ReleaseServices(bounded(c.t), chainID))
	return report
}

func (c *incidentChains) progress(chainID string, progress escalation.ChainProgress) {
	c.t.Helper()
	require.NoError(c.t, c.s.RecordProgress(bounded(c.t), escalation.ChainRun{ChainID: chainID, FirstRunID: c.run}, progress))
}

// open returns the open incidents.
func (c *incidentChains) open() []escalation.Incident {
	c.t.Helper()
	incidents, err := c.s.Incidents(bounded(c.t), store.IncidentFilter{})
	require.NoError(c.t, err)
	return incidents
}

func (c *incidentChains) incident(id string) escalation.Incident {
	c.t.Helper()
	incident, err := c.s.Incident(bounded(c.t), id)
	require.NoError(c.t, err)
	return incident
}

func finds(status escalation.VerdictStatus, kind string, services ...string) escalation.Verdict {
	return escalation.Verdict{Status: status, Summary: "what is wrong", Services: services, Kind: kind}
}

func healthy(services ...string) escalation.Verdict {
	verdict := escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}
	for _, service := range services {
		verdict.Checks = append(verdict.Checks, escalation.CheckResult{Service: service, CheckType: "http", Status: escalation.CheckHealthy})
	}
	return verdict
}

// testIncident follows one incident from the first sighting, through a repair, to the resolution.
func testIncident(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("first", 1, finds(escalation.VerdictEscalate, "down", "web"))
	require.Len(t, c.open(), 1)
	incident := c.open()[0]
	require.Equal(t, "incident-1", incident.ID)
	require.Equal(t, escalation.IncidentOpen, incident.State)
	require.Equal(t, []string{"web"}, incident.Services)
	require.Equal(t, c.at.Add(time.Minute), incident.OpenedAt)
	require.InDelta(t, 0.5, incident.CostUSD, 1e-9)

	repair := finds(escalation.VerdictNeedsHuman, "", "web")
	repair.Remediation = "restarted it"
	c.ran("first", 2, repair)
	incident = c.incident(incident.ID)
	require.Equal(t, escalation.IncidentRepairing, incident.State)
	require.Equal(t, "down", incident.Kind)
	require.InDelta(t, 1.0, incident.CostUSD, 1e-9)
	until := c.at.Add(72 * time.Hour)
	c.progress("first", escalation.ChainProgress{
		Status: escalation.ChainWaiting, Rule: escalation.RuleVerdict, Reason: "asks for a person", Until: until, At: c.at, MaxTier: 2,
	})
	incident = c.incident(incident.ID)
	require.Equal(t, escalation.IncidentWaiting, incident.State)
	require.Equal(t, escalation.IncidentChain{
		ChainID: "first", Tier: 2, Did: "restarted it", Cost: escalation.Cost{CostUSD: 1}, Since: incident.OpenedAt,
		ChainProgress: escalation.ChainProgress{
			Status: escalation.ChainWaiting, Rule: escalation.RuleVerdict, Reason: "asks for a person", Until: until, At: c.at, MaxTier: 2,
		},
	}, incident.Chains[0])

	// If a look leaves the incident to that chain, the look's chain does not become one of the incident's chains.
	c.ran("second", 1, finds(escalation.VerdictEscalate, "", "WEB "))
	c.progress("second", escalation.ChainProgress{Status: escalation.ChainEnded, At: c.at, Leaves: []string{incident.ID}})
	incident = c.incident(incident.ID)
	require.Len(t, incident.Chains, 1)
	require.Equal(t, c.at.Add(time.Minute), incident.LastSeenAt)
	require.Equal(t, escalation.IncidentWaiting, incident.State)

	c.ran("third", 1, healthy("web"))
	require.Empty(t, c.open())
	incident = c.incident(incident.ID)
	require.Equal(t, escalation.IncidentResolved, incident.State)
	require.Equal(t, "third", incident.ResolvedBy)
	require.Equal(t, escalation.IncidentHealed, incident.Resolution)
	own, healed, err := c.s.ChainIncidents(bounded(t), escalation.ChainRun{ChainID: "third"}, "third/"+c.at.String())
	require.NoError(t, err)
	require.Empty(t, own)
	require.Len(t, healed, 1)

	// A chain that ends its own incident names it, too, because another chain may wait with it.
	c.ran("fourth", 1, finds(escalation.VerdictEscalate, "down", "web"))
	c.ran("fourth", 2, finds(escalation.VerdictResolved, "", "web"))
	_, healed, err = c.s.ChainIncidents(bounded(t), escalation.ChainRun{ChainID: "fourth"}, "fourth/"+c.at.String())
	require.NoError(t, err)
	require.Len(t, healed, 1)
	require.Len(t, healed[0].Chains, 1, "the chain knows its own work")
	require.Equal(t, escalation.ChainWaiting, healed[0].Chains[0].Status)
	own, _, err = c.s.ChainIncidents(bounded(t), escalation.ChainRun{ChainID: "first"}, "none")
	require.NoError(t, err)
	require.Len(t, own, 1)

	c.ran("fifth", 1, finds(escalation.VerdictEscalate, "down", "db"))
	c.ran("fifth", 2, finds(escalation.VerdictResolved, "", "db"))
	own, healed, err = c.s.ChainIncidents(bounded(t), escalation.ChainRun{ChainID: "fifth"}, "fifth/"+c.at.String())
	require.NoError(t, err)
	require.Len(t, own, 1)
	require.Equal(t, escalation.IncidentResolved, own[0].State)
	require.Empty(t, own[0].Chains)
	require.Empty(t, healed, "no other chain waits with it")
}

// testIncidentOfManyChains makes more chains wait with one incident than it lists. Then a later chain repairs.
func testIncidentOfManyChains(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	for i := range escalation.MaxActiveChains + 1 {
		chain := fmt.Sprintf("waiting %d", i)
		c.ran(chain, 1, finds(escalation.VerdictNeedsHuman, "down", "web"))
		c.progress(chain, escalation.ChainProgress{Status: escalation.ChainWaiting, At: c.at})
	}
	incident := c.incident("incident-1")
	require.Len(t, incident.Chains, escalation.MaxActiveChains)
	require.Equal(t, "waiting 0", incident.Chains[0].ChainID)
	require.InDelta(t, 0.5*(escalation.MaxActiveChains+1), incident.CostUSD, 1e-9, "of all chains")

	c.ran("repairs", 1, finds(escalation.VerdictEscalate, "down", "web"))
	c.ran("repairs", 2, finds(escalation.VerdictNeedsHuman, "down", "web"))
	incident = c.incident("incident-1")
	require.Len(t, incident.Chains, escalation.MaxActiveChains+1)
	require.Equal(t, escalation.IncidentRepairing, incident.State)

	closed, err := c.s.CloseIncident(bounded(t), incident.ID, store.IncidentClosing{Actor: "ada", At: c.at})
	require.NoError(t, err)
	require.Len(t, closed.Chains, escalation.MaxActiveChains+2, "each chain at work is told")
	last := fmt.Sprintf("waiting %d", escalation.MaxActiveChains)
	require.True(t, slices.ContainsFunc(closed.Chains, func(chain escalation.IncidentChain) bool { return chain.ChainID == last }))
}

// testHealedIncidentOfManyChains resolves an incident with which more chains wait than it lists. Each of them is told.
func testHealedIncidentOfManyChains(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	for i := range escalation.MaxActiveChains + 5 {
		chain := fmt.Sprintf("waiting %d", i)
		c.ran(chain, 1, finds(escalation.VerdictNeedsHuman, "down", "web"))
		c.progress(chain, escalation.ChainProgress{Status: escalation.ChainWaiting, At: c.at})
	}
	c.ran("looks", 1, healthy("web"))
	_, healed, err := c.s.ChainIncidents(bounded(t), escalation.ChainRun{ChainID: "looks"}, "looks/"+c.at.String())
	require.NoError(t, err)
	require.Len(t, healed, 1)
	require.Len(t, healed[0].Chains, escalation.MaxActiveChains+5)
}

// testDryRunsAfterAGate lets many dry runs meet an incident whose chain has asked for a person. They change nothing for
// the next look: the chain that asked takes care of the incident, and the tier that was tried is known.
func testDryRunsAfterAGate(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("asked", 1, finds(escalation.VerdictEscalate, "down", "web"))
	c.ran("asked", 3, finds(escalation.VerdictNeedsHuman, "down", "web"))
	c.progress("asked", escalation.ChainProgress{
		Status: escalation.ChainEnded, Outcome: escalation.OutcomeNeedsHuman, Rule: escalation.RuleVerdict, At: c.at, MaxTier: 3,
	})
	for i := range 3 * escalation.MaxIncidentChains {
		chain := fmt.Sprintf("dry %d", i)
		c.ran(chain, 1, finds(escalation.VerdictEscalate, "down", "web"))
		c.progress(chain, escalation.ChainProgress{
			Status: escalation.ChainEnded, Outcome: escalation.OutcomeSuppressed, Rule: escalation.RuleDryRun, At: c.at, DryRun: true,
		})
	}
	known, err := c.s.Incidents(bounded(t), store.IncidentFilter{Services: []string{"web"}})
	require.NoError(t, err)
	require.Len(t, known, 1)
	require.LessOrEqual(t, len(known[0].Chains), escalation.MaxIncidentChains+1)
	handler, handled := known[0].Handler(escalation.ChainRun{ChainID: "next"}, c.at)
	require.True(t, handled)
	require.Equal(t, "asked", handler.ChainID)
	require.Equal(t, escalation.IncidentWaiting, known[0].State)
	require.Equal(t, escalation.TierFullRepair, known[0].HighestTier())
}

// testIncidentsOfVerdicts checks which incidents a second verdict opens, finds again or resolves.
func testIncidentsOfVerdicts(t *testing.T, database backend) {
	issue := func(kind, service string) escalation.Issue {
		return escalation.Issue{Summary: kind, Services: []string{service}, Severity: escalation.SeverityWarning, Kind: kind}
	}
	several := finds(escalation.VerdictEscalate, "", "web", "db")
	several.Issues = []escalation.Issue{issue("down", "web"), issue("disk_full", "db")}
	unnamed := finds(escalation.VerdictEscalate, "", "web")
	unnamed.Issues = []escalation.Issue{issue("", "web"), issue("", "web")}
	healedDB := several
	healedDB.Issues, healedDB.Services = several.Issues[:1], []string{"web"}
	healedDB.Known = []escalation.KnownIncident{{ID: "incident-2", Status: escalation.IncidentGone}}
	named := finds(escalation.VerdictEscalate, "", "web", "db", "mail")
	named.Known = []escalation.KnownIncident{
		{ID: "incident-1", Status: escalation.IncidentUnchanged}, {ID: "incident-2", Status: escalation.IncidentWorse},
	}
	for name, tt := range map[string]struct {
		second escalation.Verdict
		open   []string
	}{
		"the same":                 {several, []string{"incident-1", "incident-2"}},
		"another kind":             {finds(escalation.VerdictEscalate, "certificate", "web"), []string{"incident-1", "incident-2", "incident-3"}},
		"no kind":                  {finds(escalation.VerdictNeedsHuman, "", "web"), []string{"incident-1", "incident-2"}},
		"two without a kind":       {unnamed, []string{"incident-1", "incident-2", "incident-3"}},
		"another service":          {finds(escalation.VerdictEscalate, "", "mail"), []string{"incident-1", "incident-2", "incident-3"}},
		"one has healed":           {healedDB, []string{"incident-1"}},
		"named, and one more":      {named, []string{"incident-1", "incident-2", "incident-3"}},
		"a failure names nothing":  {escalation.Verdict{Status: escalation.VerdictFailed, Summary: "no"}, []string{"incident-1", "incident-2", "incident-3"}},
		"no service at all":        {finds(escalation.VerdictNeedsHuman, ""), []string{"incident-1", "incident-2", "incident-3"}},
		"all is well":              {healthy(), nil},
		"one service is well":      {escalation.Verdict{Status: escalation.VerdictNeedsHuman, Services: []string{"mail"}, Checks: healthy("db").Checks}, []string{"incident-1", "incident-3"}},
		"well, but this is known":  {escalation.Verdict{Status: escalation.VerdictHealthy, Known: []escalation.KnownIncident{{ID: "incident-1", Status: escalation.IncidentUnchanged}}}, []string{"incident-1"}},
		"another chain's repair":   {escalation.Verdict{Status: escalation.VerdictResolved, Services: []string{"db"}}, []string{"incident-1"}},
		"a repair of what is less": {escalation.Verdict{Status: escalation.VerdictResolved, Services: []string{"mail"}}, []string{"incident-1", "incident-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newIncidentChains(t, database)
			c.ran("first", 1, several)
			c.ran("second", 1, tt.second)
			var open []string
			for _, incident := range c.open() {
				open = append(open, incident.ID)
			}
			require.Equal(t, tt.open, open)
		})
	}
}

// testWorseBesideIssue checks that a verdict with issues can report another incident as worse.
func testWorseBesideIssue(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("first", 1, finds(escalation.VerdictEscalate, "down", "web"))
	worse := finds(escalation.VerdictEscalate, "", "db")
	worse.Issues = []escalation.Issue{{Summary: "the disk is full", Services: []string{"db"}}}
	worse.Known = []escalation.KnownIncident{{ID: "incident-1", Status: escalation.IncidentWorse}}
	c.ran("second", 1, worse)
	web := c.incident("incident-1")
	require.Equal(t, c.at.Add(time.Minute), web.WorseAt)
	require.Equal(t, c.at.Add(time.Minute), web.LastSeenAt)
	require.Equal(t, "what is wrong", web.Summary)
	require.Equal(t, []string{"web"}, web.Services)
	require.Len(t, c.open(), 2)

	worse = finds(escalation.VerdictNeedsHuman, "", "db")
	worse.Known = []escalation.KnownIncident{{ID: "incident-2", Status: escalation.IncidentWorse}}
	c.ran("second", 2, worse)
	require.Zero(t, c.incident("incident-2").WorseAt, "its own chain needs no news of it")
}

// testIncidentOfNoService checks that verdicts without a service lead to one incident.
func testIncidentOfNoService(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("first", 1, finds(escalation.VerdictNeedsHuman, ""))
	c.ran("second", 1, finds(escalation.VerdictNeedsHuman, ""))
	c.ran("third", 1, finds(escalation.VerdictNeedsHuman, "", "web"))
	require.Len(t, c.open(), 2)
	require.Empty(t, c.open()[0].Services)
	require.NotNil(t, c.open()[0].Services)
	c.ran("fourth", 1, healthy("web"))
	require.Empty(t, c.open())
}

// testIncidentReturns checks that a fault that comes back is the same incident, and that only a return after a repair
// counts against the repairs.
func testIncidentReturns(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	repaired := finds(escalation.VerdictResolved, "", "web")
	for _, chain := range []string{"a", "b"} {
		c.ran(chain, 1, finds(escalation.VerdictEscalate, "down", "web"))
		c.ran(chain, 2, repaired)
		c.progress(chain, escalation.ChainProgress{Status: escalation.ChainEnded, Outcome: escalation.OutcomeResolved, At: c.at})
	}
	incident := c.incident("incident-1")
	require.Equal(t, escalation.IncidentRepaired, incident.Resolution)
	require.Equal(t, 1, incident.Returned)
	require.Len(t, incident.Returns, 1)
	require.Equal(t, 2, incident.ReturnsWithin(escalation.Limit{Max: 3, Window: escalation.Duration(24 * time.Hour)}, c.at), "it would return now")

	c.ran("c", 1, finds(escalation.VerdictEscalate, "down", "web"))
	c.ran("d", 1, healthy())
	c.ran("e", 1, finds(escalation.VerdictEscalate, "down", "web"))
	incident = c.incident("incident-1")
	require.Equal(t, 3, incident.Returned)
	require.Len(t, incident.Returns, 2, "it had healed by itself once")
	require.Equal(t, escalation.IncidentOpen, incident.State)
	require.Len(t, c.open(), 1)

	c.ran("f", 1, healthy())
	c.at = c.at.Add(escalation.IncidentMemory)
	c.ran("g", 1, finds(escalation.VerdictEscalate, "down", "web"))
	require.Equal(t, "incident-2", c.open()[0].ID, "nobody remembers the old one")
}

// testIncidentsTwice checks that recording the end of a session twice changes the incidents once.
func testIncidentsTwice(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	report := c.ran("a", 1, finds(escalation.VerdictEscalate, "down", "web"))
	first := "a/" + c.at.String()
	c.ran("b", 1, healthy())
	before := c.incident("incident-1")
	require.NoError(t, c.s.CloseSession(bounded(t), first, report, c.at))
	require.Equal(t, before, c.incident("incident-1"))
	report.CostUSD++ // another report of an old session does not open the incident again
	require.NoError(t, c.s.CloseSession(bounded(t), first, report, c.at.Add(-30*time.Minute)))
	require.Equal(t, escalation.IncidentResolved, c.incident("incident-1").State)
}

// testOverlappingLooks checks that a healthy look does not resolve an incident that another look found while the first
// one ran. A later report about the first look does not resolve it either.
func testOverlappingLooks(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	first := opening("first", "first/look", 0)
	first.Tier, first.StartedAt = 1, noon.Add(time.Hour-time.Minute)
	_, err := c.s.OpenSession(bounded(t), first, escalation.AdmissionRequest{}, lenient())
	require.NoError(t, err)
	c.ran("second", 1, finds(escalation.VerdictEscalate, "down", "web"))
	well := healthy("web")
	report := escalation.Report{Status: escalation.SessionCompleted, Attempts: 1, Verdict: &well}
	for range 2 {
		report.CostUSD++
		require.NoError(t, c.s.CloseSession(bounded(t), "first/look", report, c.at.Add(2*time.Minute)))
		require.Len(t, c.open(), 1)
	}
	c.ran("third", 1, well)
	require.Empty(t, c.open())
}

// testHealthyRequest checks a healthy look with an operator's request. It must leave incidents open that its verdict
// does not name.
func testHealthyRequest(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("first", 1, finds(escalation.VerdictEscalate, "down", "web"))
	session := opening("backups", "backups/look", 0)
	session.Tier, session.StartedAt, session.HasRequest = 1, c.at.Add(time.Hour), true
	_, err := c.s.OpenSession(bounded(t), session, escalation.AdmissionRequest{}, lenient())
	require.NoError(t, err)
	well := healthy("backups")
	report := escalation.Report{Status: escalation.SessionCompleted, Attempts: 1, Verdict: &well}
	require.NoError(t, c.s.CloseSession(bounded(t), "backups/look", report, c.at.Add(2*time.Hour)))
	require.Len(t, c.open(), 1)
}

// testHandoffClaims checks that a chain takes care of its incident while its first tier writes the handoff to a repair.
func testHandoffClaims(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("first", 1, finds(escalation.VerdictEscalate, "down", "web"))
	session := opening("first", "first/handoff", 0)
	session.Tier, session.Purpose, session.StartedAt = 1, escalation.PurposeHandoff, c.at.Add(time.Hour)
	_, err := c.s.OpenSession(bounded(t), session, escalation.AdmissionRequest{Services: []string{"web"}}, lenient())
	require.NoError(t, err)
	require.Equal(t, escalation.IncidentRepairing, c.incident("incident-1").State)
}

// testWorseAgain checks that WorseAt changes once for each chain that takes care of the incident, so that each of these
// chains is informed once.
func testWorseAgain(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	worse := finds(escalation.VerdictEscalate, "down", "web")
	worse.Known = []escalation.KnownIncident{{ID: "incident-1", Status: escalation.IncidentWorse}}
	c.ran("first", 1, finds(escalation.VerdictEscalate, "down", "web"))
	c.progress("first", escalation.ChainProgress{Status: escalation.ChainWaiting, At: c.at})
	look := func(name string, changes bool) {
		t.Helper()
		before := c.incident("incident-1").WorseAt
		c.ran(name, 1, worse)
		c.progress(name, escalation.ChainProgress{Status: escalation.ChainEnded, At: c.at, Leaves: []string{"incident-1"}})
		if changes {
			before = c.at.Add(time.Minute)
		}
		require.Equal(t, before, c.incident("incident-1").WorseAt, name)
	}
	look("second", true)
	look("third", false)
	c.progress("first", escalation.ChainProgress{Status: escalation.ChainEnded, Outcome: escalation.OutcomeNeedsHuman, At: c.at.Add(2 * time.Minute)})
	c.ran("fourth", 1, worse)
	c.progress("fourth", escalation.ChainProgress{Status: escalation.ChainWaiting, At: c.at.Add(2 * time.Minute)})
	look("fifth", true)
	look("sixth", false)
}

// testCloseIncident checks that a person can close an incident.
func testCloseIncident(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("a", 1, finds(escalation.VerdictEscalate, "down", "web"))
	ada := store.IncidentClosing{Actor: "ada", Reason: "the disk is replaced", At: c.at}
	for _, id := range []string{"incident-9", "another"} {
		_, err := c.s.CloseIncident(bounded(t), id, ada)
		require.ErrorIs(t, err, store.ErrNotFound, id)
	}
	_, err := c.s.CloseIncident(bounded(t), "incident-1", store.IncidentClosing{At: c.at})
	require.ErrorIs(t, err, store.ErrInvalid)
	require.Empty(t, c.incident("incident-1").ResolvedBy)
	closed, err := c.s.CloseIncident(bounded(t), "incident-1", ada)
	require.NoError(t, err)
	require.Equal(t, c.incident("incident-1"), closed)
	again, err := c.s.CloseIncident(bounded(t), "incident-1", store.IncidentClosing{Actor: "ben", At: c.at.Add(time.Hour)})
	require.ErrorIs(t, err, store.ErrConflict)
	require.Equal(t, closed, again)
	require.Equal(t, closed, c.incident("incident-1"))
	require.Equal(t, "ada", closed.ResolvedBy)
	require.Equal(t, "the disk is replaced", closed.ResolvedReason)
	require.Equal(t, escalation.IncidentClosed, closed.Resolution)
	require.Equal(t, escalation.IncidentResolved, closed.State)

	c.ran("b", 1, finds(escalation.VerdictEscalate, "down", "web"))
	returned := c.incident("incident-1")
	require.Equal(t, 1, returned.Returned)
	require.Empty(t, returned.ResolvedBy+returned.ResolvedReason)
}

// testAcknowledgedIncidents checks how long an acknowledgement lasts, and which snoozes have ended.
func testAcknowledgedIncidents(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("a", 1, finds(escalation.VerdictEscalate, "down", "web"))
	c.progress("a", escalation.ChainProgress{Status: escalation.ChainWaiting, At: c.at})
	known := func() bool {
		all, err := c.s.Acknowledged(bounded(t), "a")
		require.NoError(t, err)
		return all
	}
	ended := func(at time.Time) []escalation.Incident {
		found, err := c.s.EndedSnoozes(bounded(t), at)
		require.NoError(t, err)
		return found
	}
	acknowledge := func(by *escalation.Acknowledgement) {
		acknowledged, err := c.s.Acknowledge(bounded(t), "incident-1", by)
		require.NoError(t, err)
		require.Equal(t, c.incident("incident-1"), acknowledged)
		require.Equal(t, by, acknowledged.Acknowledged)
	}
	require.False(t, known())
	until := c.at.Add(8 * time.Hour)
	snooze := escalation.Acknowledgement{Actor: "ada", Verified: true, At: c.at, Until: until, Note: "a disk is ordered"}
	acknowledge(&snooze)
	require.True(t, known())
	require.Empty(t, ended(until.Add(-time.Second)))
	over := ended(until)
	require.Len(t, over, 1)
	require.Len(t, over[0].Chains, 1)
	later := snooze
	later.Until = until.Add(time.Hour)
	acknowledge(&later)
	require.NoError(t, c.s.EndSnooze(bounded(t), over[0]))
	require.Equal(t, &later, c.incident("incident-1").Acknowledged, "it was snoozed again meanwhile")
	require.NoError(t, c.s.EndSnooze(bounded(t), ended(later.Until)[0]))
	require.False(t, known())
	require.Empty(t, ended(later.Until))

	acknowledge(&escalation.Acknowledgement{Actor: "ben", At: c.at})
	require.Empty(t, ended(until.Add(1000*time.Hour)), "without an end")
	c.ran("b", 1, finds(escalation.VerdictEscalate, "down", "web"))
	require.True(t, known(), "it is as before")
	worse := finds(escalation.VerdictEscalate, "down", "web")
	worse.Known = []escalation.KnownIncident{{ID: "incident-1", Status: escalation.IncidentWorse}}
	c.ran("c", 1, worse)
	require.False(t, known(), "it is worse")
	acknowledge(&snooze)
	acknowledge(nil)
	acknowledge(&snooze)

	_, err := c.s.CloseIncident(bounded(t), "incident-1", store.IncidentClosing{Actor: "ada", At: c.at})
	require.NoError(t, err)
	require.Empty(t, ended(until))
	resolved, err := c.s.Acknowledge(bounded(t), "incident-1", nil)
	require.ErrorIs(t, err, store.ErrConflict)
	require.Equal(t, &snooze, resolved.Acknowledged)
	_, err = c.s.Acknowledge(bounded(t), "incident-9", nil)
	require.ErrorIs(t, err, store.ErrNotFound)
	c.ran("d", 1, finds(escalation.VerdictEscalate, "down", "web"))
	require.Nil(t, c.incident("incident-1").Acknowledged, "it has come back")
}

// testAbandonedIncidents checks that an ended chain no longer takes care of its incidents. If the chain has recorded
// progress after its row was read, it must keep its incidents.
func testAbandonedIncidents(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("a", 1, finds(escalation.VerdictEscalate, "down", "web"))
	working, err := c.s.ChainsAtWork(bounded(t))
	require.NoError(t, err)
	require.Len(t, working, 1, "it may be terminated in its first look")
	c.progress("a", escalation.ChainProgress{Status: escalation.ChainWaiting, At: c.at})
	working, err = c.s.ChainsAtWork(bounded(t))
	require.NoError(t, err)
	require.Equal(t, []store.ChainAtWork{{ChainRun: escalation.ChainRun{ChainID: "a"}, At: c.at}}, working)
	c.progress("a", escalation.ChainProgress{Status: escalation.ChainWaiting, Rule: escalation.RuleVerdict, At: c.at.Add(time.Minute)})
	abandoned, err := c.s.AbandonIncidents(bounded(t), working[0], "it is gone")
	require.NoError(t, err)
	require.False(t, abandoned)
	working[0].At = c.at.Add(time.Minute)
	abandoned, err = c.s.AbandonIncidents(bounded(t), working[0], "it is gone")
	require.NoError(t, err)
	require.True(t, abandoned)
	working, err = c.s.ChainsAtWork(bounded(t))
	require.NoError(t, err)
	require.Empty(t, working)
	require.Equal(t, escalation.IncidentOpen, c.incident("incident-1").State)
	require.Empty(t, c.incident("incident-1").Chains[0].Rule, "the chain has not decided to end")
}

// testIncidentsOfAnID checks that two consecutive chains with the same workflow ID share no work on incidents.
func testIncidentsOfAnID(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.run = "run-1"
	c.ran("nightly", 1, finds(escalation.VerdictEscalate, "down", "web"))
	c.ran("nightly", 2, finds(escalation.VerdictNeedsHuman, "", "web"))
	c.progress("nightly", escalation.ChainProgress{
		Status: escalation.ChainWaiting, Rule: escalation.RuleVerdict, Reason: "asks for a person", At: c.at,
	})
	c.run = "run-2" // the first one was terminated
	c.ran("nightly", 1, finds(escalation.VerdictEscalate, "disk_full", "db"))
	web, db := c.incident("incident-1"), c.incident("incident-2")
	require.Len(t, web.Chains, 1)
	require.Equal(t, escalation.IncidentOpen, web.State, "a later chain has the same ID, so this one has gone")
	require.InDelta(t, 1.0, web.CostUSD, 1e-9)
	require.InDelta(t, 1.0, web.Chains[0].CostUSD, 1e-9)
	require.InDelta(t, 0.5, db.CostUSD, 1e-9)

	c.progress("nightly", escalation.ChainProgress{Status: escalation.ChainRepairing, At: c.at.Add(time.Minute)})
	require.Equal(t, escalation.IncidentRepairing, c.incident("incident-2").State)
	require.Equal(t, escalation.IncidentOpen, c.incident("incident-1").State)
	own, _, err := c.s.ChainIncidents(bounded(t), escalation.ChainRun{ChainID: "nightly", FirstRunID: "run-2"}, "none")
	require.NoError(t, err)
	require.Len(t, own, 1)
	require.Equal(t, "incident-2", own[0].ID)

	c.ran("nightly", 2, finds(escalation.VerdictResolved, "", "db", "web"))
	require.Equal(t, "incident-1", c.open()[0].ID, "it has repaired its own")
	session := opening("nightly", "nightly once more", 0)
	session.Tier, session.StartedAt, session.FirstRunID = 2, c.at.Add(time.Hour), "run-3"
	opened, err := c.s.OpenSession(bounded(t), session, escalation.AdmissionRequest{
		Services: []string{"web"}, Incidents: []string{"incident-1"},
	}, lenient())
	require.NoError(t, err)
	require.Len(t, opened.Repairs, 2, "also those of earlier chains with its ID")

	// What the first chain records late ends no later one.
	c.run = "run-1"
	c.progress("nightly", escalation.ChainProgress{Status: escalation.ChainEnded, Outcome: escalation.OutcomeAborted, At: noon})
	require.Equal(t, escalation.OutcomeAborted, c.incident("incident-1").Chains[0].Outcome)
	require.Equal(t, escalation.IncidentRepairing, c.incident("incident-1").State)
}

// testIncidentsOfIssues checks an incident of a split chain. When the chain of its issue has ended, no chain takes care
// of the incident, even while other issues are still being repaired.
func testIncidentsOfIssues(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	several := finds(escalation.VerdictEscalate, "", "web", "db")
	several.Issues = []escalation.Issue{{Summary: "web", Services: []string{"web"}}, {Summary: "db", Services: []string{"db"}}}
	c.ran("first", 1, several)
	c.progress("first", escalation.ChainProgress{Status: escalation.ChainRepairing, At: c.at})
	ended := escalation.IssueChain{IncidentID: "incident-1", Outcome: escalation.OutcomeFailed, Reason: "no worker"}
	c.progress("first", escalation.ProgressOfIssue(escalation.Policy{}, ended, c.at))
	web := c.incident("incident-1")
	require.Equal(t, escalation.IncidentOpen, web.State)
	_, handled := web.Handler(escalation.ChainRun{ChainID: "look"}, c.at)
	require.False(t, handled)
	require.Equal(t, escalation.OutcomeFailed, web.Chains[0].Outcome)
	require.Equal(t, escalation.IncidentRepairing, c.incident("incident-2").State)
}

// testIncidentBeforeSession checks that a chain that waits before its first session takes care of its incident.
func testIncidentBeforeSession(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("first", 1, finds(escalation.VerdictEscalate, "down", "web"))
	c.progress("issue", escalation.ChainProgress{
		Status: escalation.ChainWaiting, Reason: "the service is busy", At: c.at, Owns: []string{"incident-1", "incident-77"},
	})
	incident := c.incident("incident-1")
	require.Equal(t, escalation.IncidentWaiting, incident.State)
	handler, handled := incident.Handler(escalation.ChainRun{ChainID: "look"}, c.at)
	require.True(t, handled)
	require.Equal(t, "issue", handler.ChainID)
	require.Equal(t, c.at, handler.Since)
	c.progress("issue", escalation.ChainProgress{Status: escalation.ChainEnded, At: c.at, Owns: []string{"incident-1"}})
	require.Len(t, c.incident("incident-1").Chains, 2)
	require.Equal(t, escalation.IncidentOpen, c.incident("incident-1").State)
}

// testIncidentBrief checks the incidents in the brief of an opened session. A look gets the open incidents. A repair
// gets its own incidents and the earlier repairs.
func testIncidentBrief(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("old", 1, finds(escalation.VerdictEscalate, "down", "web"))
	failed := finds(escalation.VerdictNeedsHuman, "", "web")
	failed.Actions = []escalation.Action{{Kind: escalation.ActionRestart, Service: "web"}}
	c.ran("old", 2, failed)
	c.ran("other", 2, finds(escalation.VerdictNeedsHuman, "", "db"))

	open := func(id string, tier escalation.Tier, request escalation.AdmissionRequest) escalation.IncidentBrief {
		session := opening(id, id+" again", 0)
		session.Tier, session.StartedAt = tier, c.at.Add(time.Hour)
		opened, err := c.s.OpenSession(bounded(t), session, request, lenient())
		require.NoError(t, err)
		return opened.IncidentBrief
	}
	brief := open("look", 1, escalation.AdmissionRequest{})
	require.Len(t, brief.Incidents, 2)
	require.Empty(t, brief.Repairs)
	require.Len(t, open("look at one", 1, escalation.AdmissionRequest{Services: []string{"db"}}).Incidents, 1)

	brief = open("repair", 2, escalation.AdmissionRequest{Services: []string{"web"}, Incidents: []string{"incident-1", "incident-77"}})
	require.Len(t, brief.Incidents, 1)
	require.Equal(t, escalation.IncidentRepairing, brief.Incidents[0].State)
	require.Len(t, brief.Incidents[0].Chains, 1, "the chain knows its own work")
	require.Equal(t, "old", brief.Incidents[0].Chains[0].ChainID)
	require.Equal(t, escalation.IncidentRepairing, c.incident("incident-1").State)
	require.Len(t, brief.Repairs, 1)
	require.Equal(t, "old", brief.Repairs[0].ChainID)
	require.Equal(t, []string{"restart of web, failed"}, brief.Repairs[0].Actions)

	late := escalation.Report{Status: escalation.SessionTimedOut, Error: "its time was up", ContextTokens: 9}
	require.NoError(t, c.s.CloseSession(bounded(t), "repair again", late, c.at.Add(2*time.Hour)))
	chains := c.incident("incident-1").Chains
	require.Equal(t, escalation.TierSafeRepair, chains[len(chains)-1].Tier, "also without a verdict")
	require.Equal(t, "its time was up", chains[len(chains)-1].Did)
}

// testRepairsAmongMany repairs one service, and after that many others. The next repair of the first one learns of it.
func testRepairsAmongMany(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("web", 2, finds(escalation.VerdictNeedsHuman, "down", "web"))
	for i := range 210 {
		c.at = c.at.Add(-time.Hour + time.Minute) // ran adds an hour
		c.ran(fmt.Sprintf("other %d", i), 2, finds(escalation.VerdictResolved, "", fmt.Sprintf("service-%d", i)))
	}
	session := opening("next", "next/repair", 0)
	session.Tier, session.StartedAt = escalation.TierSafeRepair, c.at.Add(time.Hour)
	opened := admit(t, c.s, session, about("web"), lenient())
	require.Len(t, opened.Repairs, 1)
	require.Equal(t, "web", opened.Repairs[0].ChainID)
}

// testPageOfIncidents checks that a list of resolved incidents continues where the page before has ended, although
// incidents were resolved at the same time.
func testPageOfIncidents(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	for _, service := range []string{"a", "b", "c", "d", "e"} {
		c.ran("chain-"+service, 1, finds(escalation.VerdictEscalate, "down", service))
	}
	for number, at := range map[string]time.Time{"1": noon.Add(2 * time.Hour), "2": noon.Add(time.Hour), "3": noon.Add(2 * time.Hour), "4": noon.Add(3 * time.Hour)} {
		_, err := c.s.CloseIncident(bounded(t), "incident-"+number, store.IncidentClosing{Actor: "ada", At: at})
		require.NoError(t, err)
	}
	filter := store.IncidentFilter{Since: noon, OnlyResolved: true, Limit: 1}
	var ids []string
	for {
		found, err := c.s.Incidents(bounded(t), filter)
		require.NoError(t, err)
		if len(found) == 0 {
			break
		}
		require.Len(t, found, 1)
		ids = append(ids, found[0].ID)
		filter.After = store.IncidentPlace{ResolvedAt: found[0].ResolvedAt, ID: found[0].ID}
	}
	require.Equal(t, []string{"incident-4", "incident-3", "incident-1", "incident-2"}, ids)
}

// testClosedByAWrongClock checks that an incident which a person has closed on a host a day ahead can come back: what
// later looks see is not overtaken by that.
func testClosedByAWrongClock(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("a", 1, finds(escalation.VerdictEscalate, "down", "web"))
	_, err := c.s.CloseIncident(bounded(t), "incident-1", store.IncidentClosing{Actor: "ada", At: c.at.Add(24 * time.Hour)})
	require.NoError(t, err)
	c.ran("b", 1, finds(escalation.VerdictEscalate, "down", "web"))
	require.Equal(t, 1, c.incident("incident-1").Returned)
}

// testIncidentOfUnknownCost checks that an incident costs as much as its chains: what is reserved for a session of
// unknown cost is not its cost.
func testIncidentOfUnknownCost(t *testing.T, database backend) {
	s := database(t)()
	policy := lenient()
	policy.Tiers[0].BudgetUSD = 4
	_, err := s.OpenSession(bounded(t), opening("chain", "a", 0), escalation.AdmissionRequest{}, policy)
	require.NoError(t, err)
	lost := escalation.Report{Status: escalation.SessionFailed, Cost: escalation.Cost{CostUSD: 0.5, CostEstimated: true}}
	mustClose(t, s, "a", lost, noon)
	incident, err := s.Incident(bounded(t), "incident-1")
	require.NoError(t, err)
	sessions, err := s.Chain(bounded(t), "chain")
	require.NoError(t, err)
	require.InDelta(t, 0.5, incident.CostUSD, 1e-9)
	require.InDelta(t, escalation.TotalCostUSD(sessions), incident.CostUSD, 1e-9)
	day, err := s.DaySpending(bounded(t), noon)
	require.NoError(t, err)
	require.InDelta(t, 4.0, day.SpentUSD, 1e-9, "budgets count the reservation")
}
