package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// ranBetween records a session that began and ended at these times.
func (c *incidentChains) ranBetween(chainID string, tier escalation.Tier, began, ended time.Time, verdict *escalation.Verdict) {
	c.t.Helper()
	session := opening(chainID, chainID+"/"+began.String(), 0)
	session.Tier, session.StartedAt, session.FirstRunID = tier, began, c.run
	_, err := openSession(bounded(c.t), c.s, session)
	require.NoError(c.t, err)
	report := escalation.Report{Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.5}, Attempts: 1, Verdict: verdict}
	if verdict == nil {
		report.Status = escalation.SessionFailed
	}
	require.NoError(c.t, c.s.CloseSession(bounded(c.t), session.SessionID, report, ended))
}

// testResolvedDuringALook checks a look that began before an incident was resolved, and ends after it. The look says
// nothing about the incident: the incident does not return, and no other one opens.
func testResolvedDuringALook(t *testing.T, database backend) {
	for name, resolve := range map[string]func(c *incidentChains, at time.Time){
		"a repair": func(c *incidentChains, at time.Time) {
			resolved := finds(escalation.VerdictResolved, "", "web")
			c.ranBetween("waits", 2, at.Add(-5*time.Minute), at, &resolved)
		},
		"a person": func(c *incidentChains, at time.Time) {
			_, err := c.s.CloseIncident(bounded(c.t), "incident-1", store.IncidentClosing{Actor: "ada", At: at})
			require.NoError(c.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newIncidentChains(t, database)
			c.ran("waits", 1, finds(escalation.VerdictEscalate, "down", "web"))
			began := c.at.Add(time.Hour)
			resolve(c, began.Add(2*time.Minute))
			found := finds(escalation.VerdictEscalate, "", "web")
			c.ranBetween("look", 1, began, began.Add(5*time.Minute), &found)
			require.Empty(t, c.open())
			incident := c.incident("incident-1")
			require.Zero(t, incident.Returned)
			require.Len(t, incident.Chains, 1)
			found.Kind = "down"
			c.ranBetween("next", 1, began.Add(time.Hour), began.Add(time.Hour), &found)
			require.Equal(t, 1, c.incident("incident-1").Returned, "the next look finds it again")
		})
	}
}

// testSlowHost checks a fault that comes back and is found on a host whose clock is slow: the end of the look seems to
// be before the repair. The fault must not be lost.
func testSlowHost(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("repairs", 1, finds(escalation.VerdictEscalate, "down", "web"))
	c.ran("repairs", 2, finds(escalation.VerdictResolved, "", "web"))
	found := finds(escalation.VerdictEscalate, "down", "web")
	c.ranBetween("look", 1, c.at.Add(2*time.Minute), c.at.Add(-8*time.Minute), &found)
	require.Len(t, c.open(), 1)
	require.Equal(t, 1, c.incident("incident-1").Returned)
}

// testMovedOn checks a chain with two incidents, one of which has healed in a look of its own. If that one comes back,
// nobody takes care of it, although the chain still waits with the other one.
func testMovedOn(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	several := finds(escalation.VerdictNeedsHuman, "", "web", "db")
	several.Issues = []escalation.Issue{{Summary: "web", Services: []string{"web"}}, {Summary: "db", Services: []string{"db"}}}
	c.ran("waits", 1, several)
	waiting := escalation.ChainProgress{Status: escalation.ChainWaiting, At: c.at}
	c.progress("waits", waiting)
	handled := func(id string) bool {
		incident := c.incident(id)
		_, handled := incident.Handler(escalation.ChainRun{ChainID: "look"}, c.at)
		return handled
	}
	require.True(t, handled("incident-1") && handled("incident-2"))

	c.ran("waits", 1, escalation.Verdict{
		Status: escalation.VerdictNeedsHuman, Services: []string{"db"}, Checks: healthy("web").Checks, Summary: "db is still broken",
	})
	c.progress("waits", waiting)
	c.ran("look", 1, finds(escalation.VerdictEscalate, "", "web"))
	require.False(t, handled("incident-1"))
	require.True(t, handled("incident-2"))

	c.ran("waits", 1, finds(escalation.VerdictNeedsHuman, "", "web", "db"))
	c.progress("waits", waiting)
	require.True(t, handled("incident-1"), "it has met it again")
}

// testFailedLookMovedOn checks a chain whose look failed and that has looked since. Its progress must not make it the
// handler of looks that fail later.
func testFailedLookMovedOn(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	look := func(chainID string, verdict *escalation.Verdict) {
		c.at = c.at.Add(time.Hour)
		c.ranBetween(chainID, 1, c.at, c.at.Add(time.Minute), verdict)
	}
	well := healthy()
	found := finds(escalation.VerdictEscalate, "down", "web")
	look("first", nil)
	c.progress("first", escalation.ChainProgress{Status: escalation.ChainWaiting, At: c.at})
	look("other", &well)
	look("first", &found) // it looks anew
	look("second", nil)
	c.progress("first", escalation.ChainProgress{Status: escalation.ChainWaiting, At: c.at})
	incident := c.incident("incident-1")
	require.Equal(t, escalation.KindLookFailed, incident.Kind)
	require.True(t, incident.ResolvedAt.IsZero())
	_, handled := incident.Handler(escalation.ChainRun{ChainID: "third"}, c.at)
	require.False(t, handled, "it works on web now")
}

// testRepairNamesNoService checks that a repair that asks for a person and names no service keeps to the incident of
// its chain.
func testRepairNamesNoService(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("repairs", 1, finds(escalation.VerdictEscalate, "down", "web"))
	c.ran("repairs", 2, finds(escalation.VerdictNeedsHuman, ""))
	c.ran("repairs", 3, finds(escalation.VerdictNeedsHuman, ""))
	require.Len(t, c.open(), 1)
	require.Equal(t, c.at.Add(time.Minute), c.open()[0].LastSeenAt)
	c.ran("look", 1, healthy("web"))
	require.Empty(t, c.open())
}

// testSplitIncident checks that a look that reports one incident as two issues opens no other incident.
func testSplitIncident(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("waits", 1, finds(escalation.VerdictNeedsHuman, "down", "web", "db"))
	several := finds(escalation.VerdictEscalate, "", "web", "db")
	several.Issues = []escalation.Issue{{Summary: "web", Services: []string{"web"}}, {Summary: "db", Services: []string{"db"}, Kind: "down"}}
	several.Known = []escalation.KnownIncident{{ID: "incident-1", Status: escalation.IncidentUnchanged}}
	c.ran("look", 1, several)
	require.Len(t, c.open(), 1)
	require.Equal(t, []string{"web", "db"}, c.open()[0].Services)
}

// testDryRunIncident checks that a dry run takes care of no incident, whatever its end.
func testDryRunIncident(t *testing.T, database backend) {
	c := newIncidentChains(t, database)
	c.ran("dry", 1, finds(escalation.VerdictNeedsHuman, "down", "web"))
	policy := lenient()
	policy.DryRun = true
	decision := escalation.Decision{Action: escalation.DecisionComplete, Outcome: escalation.OutcomeNeedsHuman, Rule: escalation.RuleVerdict}
	c.progress("dry", escalation.ProgressOf(policy, decision, c.at))
	incident := c.incident("incident-1")
	require.True(t, incident.Chains[0].DryRun)
	_, handled := incident.Handler(escalation.ChainRun{ChainID: "look"}, c.at)
	require.False(t, handled)
	require.Equal(t, escalation.IncidentOpen, incident.State)
}

func incidentNamed(t *testing.T, s *store.Store, id string) escalation.Incident {
	t.Helper()
	incident, err := s.Incident(bounded(t), id)
	require.NoError(t, err)
	return incident
}

// testRename renames a service whose old name stays as an alias. Its incident, its lock and its ledger follow.
func testRename(t *testing.T, database backend) {
	s := database(t)()
	policy := strict()
	admit(t, s, repair("nightly", "restarts", noon), about("web"), policy)
	found := finds(escalation.VerdictNeedsHuman, "down", "web")
	for _, name := range []string{"web", "Website"} { // one session has entries with both names
		found.Actions = append(found.Actions, escalation.Action{Kind: escalation.ActionRestart, Service: name, Succeeded: true})
	}
	mustClose(t, s, "restarts", escalation.Report{Status: escalation.SessionCompleted, Attempts: 1, Verdict: &found}, noon.Add(time.Minute))
	look := opening("look", "looks", 0)
	look.Tier, look.Scope, look.StartedAt = escalation.TierObserve, []string{"web"}, noon.Add(90*time.Second)
	admit(t, s, look, about("web"), policy)
	catalog, err := escalation.NewCatalog([]escalation.Service{{Name: "Website", Aliases: []string{"web"}}})
	require.NoError(t, err)
	changed, err := s.Rename(bounded(t), catalog.Canonical)
	require.NoError(t, err)
	require.Equal(t, 5, changed, "the incident, the lock, an entry of the ledger, the repair, and the look that runs")
	mustClose(t, s, "looks", escalation.Report{Status: escalation.SessionCompleted, Attempts: 1, Verdict: &escalation.Verdict{
		Status: escalation.VerdictHealthy, Summary: "all is well",
	}}, noon.Add(2*time.Minute))
	require.Equal(t, "look", incidentNamed(t, s, "incident-1").ResolvedBy, "what it was to look at is the service of the incident")

	incident, err := s.Incident(bounded(t), "incident-1")
	require.NoError(t, err)
	require.Equal(t, []string{"Website"}, incident.Services)
	other := about("Website")
	other.ChainID, other.Tier, other.At = "weekly", escalation.TierSafeRepair, noon.Add(2*time.Minute)
	admission, err := s.Review(bounded(t), other, policy)
	require.NoError(t, err)
	require.Equal(t, escalation.RuleCooldown, admission.Rule, "two restarts")
	lenientPolicy := lenient()
	lenientPolicy.Cooldowns.MaxWait = escalation.Duration(time.Hour)
	admission, err = s.Review(bounded(t), other, lenientPolicy)
	require.NoError(t, err)
	require.Equal(t, escalation.RuleServiceBusy, admission.Rule)
	changed, err = s.Rename(bounded(t), catalog.Canonical)
	require.NoError(t, err)
	require.Zero(t, changed)
	require.NoError(t, s.ReleaseServices(bounded(t), "nightly"))
	require.Empty(t, locks(t, s))
	later, err := s.OpenSession(bounded(t), repair("weekly", "later", noon.Add(10*time.Minute)),
		escalation.AdmissionRequest{Services: []string{"Website"}}, lenient())
	require.NoError(t, err)
	require.Len(t, later.Repairs, 1, "it is told of the repair under the old name")
	require.Equal(t, "nightly", later.Repairs[0].ChainID)
}
