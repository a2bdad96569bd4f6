package escalation

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// issue returns an issue of one service.
func issue(service, kind string) Issue {
	return Issue{Summary: service + " is broken", Services: []string{service}, Kind: kind, Severity: SeverityWarning}
}

// TestMatching checks to which incident each issue of a verdict belongs.
func TestMatching(t *testing.T) {
	t.Parallel()
	both := func(kind string) Incident {
		return Incident{ID: "incident-1", Services: []string{"web", "db"}, Kind: kind}
	}
	web := Incident{ID: "incident-1", Services: []string{"web"}, Kind: "down"}
	unchanged := []KnownIncident{{ID: "incident-1", Status: IncidentUnchanged}}
	for name, tt := range map[string]struct {
		issues    []Issue
		known     []KnownIncident
		incidents []Incident
		want      []string
	}{
		"two issues of a named incident":              {[]Issue{issue("web", "down"), issue("db", "")}, unchanged, []Incident{both("down")}, []string{"incident-1", "incident-1"}},
		"two issues of a named incident, no kinds":    {[]Issue{issue("web", ""), issue("db", "")}, unchanged, []Incident{both("")}, []string{"incident-1", "incident-1"}},
		"two issues that fit equally well":            {[]Issue{issue("web", "down"), issue("db", "down")}, nil, []Incident{both("down")}, []string{"incident-1", "incident-1"}},
		"the exact one before the one without a kind": {[]Issue{issue("db", ""), issue("web", "down")}, nil, []Incident{both("down")}, []string{"", "incident-1"}},
		"two kinds are two faults":                    {[]Issue{issue("web", "down"), issue("web", "disk_full")}, nil, []Incident{both("")}, []string{"incident-1", ""}},
		"two kinds, though it is named":               {[]Issue{issue("web", "down"), issue("web", "disk_full")}, unchanged, []Incident{web}, []string{"incident-1", ""}},
		"each its own": {
			[]Issue{issue("web", ""), issue("web", "down")},
			nil,
			[]Incident{{ID: "incident-1", Services: []string{"web"}, Kind: "down"}, {ID: "incident-2", Services: []string{"web"}, Kind: "slow"}},
			[]string{"incident-2", "incident-1"},
		},
		"the incident of the same services": {
			[]Issue{issue("web", "down")}, nil, []Incident{web, {ID: "incident-2", Services: []string{"web", "db"}, Kind: "down"}}, []string{"incident-1"},
		},
		"the named one before the exact one": {
			[]Issue{issue("web", "down")},
			[]KnownIncident{{ID: "incident-2", Status: IncidentUnchanged}},
			[]Incident{web, {ID: "incident-2", Services: []string{"web", "db"}}},
			[]string{"incident-2"},
		},
		"a resolved one of another kind": {
			[]Issue{issue("web", "")}, nil, []Incident{{ID: "incident-1", Services: []string{"web"}, Kind: "down", ResolvedAt: incidentNoon.Add(-time.Hour)}}, []string{""},
		},
	} {
		session := looked(Verdict{Status: VerdictEscalate, Issues: tt.issues, Known: tt.known})
		var got []string
		for _, sighting := range session.Sightings(tt.incidents, nil) {
			require.Equal(t, len(got), sighting.Issue, name)
			id := ""
			if sighting.Incident != nil {
				id = sighting.Incident.ID
			}
			got = append(got, id)
		}
		require.Equal(t, tt.want, got, name)
	}
}

// TestMatchingIgnoresOrder checks that neither the order of the issues nor the order of the incidents decides how many
// issues are new.
func TestMatchingIgnoresOrder(t *testing.T) {
	t.Parallel()
	services := []string{"db", "mail", "web"}
	kinds := []string{"", "down"} // of three issues with two kinds, an incident without a kind could take one or two
	rapid.Check(t, func(rt *rapid.T) {
		var issues []Issue
		for range rapid.IntRange(1, 3).Draw(rt, "issues") {
			one := issue(rapid.SampledFrom(services).Draw(rt, "service"), rapid.SampledFrom(kinds).Draw(rt, "kind"))
			same := func(other Issue) bool { return other.Services[0] == one.Services[0] && sameKind(other.Kind, one.Kind) }
			if !slices.ContainsFunc(issues, same) { // otherwise two issues are one fault
				issues = append(issues, one)
			}
		}
		var incidents []Incident
		for i := range rapid.IntRange(0, 3).Draw(rt, "incidents") {
			incidents = append(incidents, Incident{
				ID: []string{"incident-1", "incident-2", "incident-3"}[i], Kind: rapid.SampledFrom(kinds).Draw(rt, "kind"),
				Services: rapid.SliceOfNDistinct(rapid.SampledFrom(services), 1, 2, rapid.ID[string]).Draw(rt, "services"),
			})
		}
		found := func(issues []Issue) (known int) {
			session := looked(Verdict{Status: VerdictEscalate, Issues: issues})
			for _, sighting := range session.Sightings(incidents, nil) {
				if sighting.Incident != nil {
					known++
				}
			}
			return known
		}
		backward := slices.Clone(issues)
		slices.Reverse(backward)
		want := found(issues)
		require.Equal(rt, want, found(backward))
		slices.Reverse(incidents)
		if len(issues) == 1 {
			require.Equal(rt, want, found(issues))
		}
	})
}

// TestSightingsWithoutServices checks that a verdict of a repair that names no service is about the incidents of its
// chain, or about the services of its session.
func TestSightingsWithoutServices(t *testing.T) {
	t.Parallel()
	incidents := []Incident{{ID: "incident-1", Services: []string{"web"}}, {ID: "incident-2", Services: []string{"db"}}}
	for _, status := range []VerdictStatus{VerdictNeedsHuman, VerdictEscalate} {
		for _, tier := range []Tier{TierSafeRepair, TierFullRepair} {
			session := looked(Verdict{Status: status, Summary: "the disk is broken"})
			session.Tier, session.Scope = tier, []string{"web"}
			found := session.Sightings(incidents, []string{"incident-1"})
			require.Len(t, found, 1)
			require.Equal(t, "incident-1", found[0].Incident.ID)
			require.Equal(t, IncidentUnchanged, found[0].News)
			found = session.Sightings(nil, nil)
			require.Equal(t, []string{"web"}, found[0].Fault.Services, "it was started at this tier")
		}
	}
	session := looked(Verdict{Status: VerdictNeedsHuman})
	session.Scope = []string{"web", "db"}
	require.Empty(t, session.Sightings(incidents, nil)[0].Fault.Services, "a look has not been told what is broken")
}

// TestRolesFindNoFaults checks that the conclusions of those who look at no service open and end no incident: an author
// who needs a person to decide has found no fault, and a reviewer heals none.
func TestRolesFindNoFaults(t *testing.T) {
	t.Parallel()
	incidents := []Incident{{ID: "incident-1", Services: []string{"web"}}}
	for _, purpose := range []Purpose{PurposeAuthor, PurposeReview, PurposeTalk, PurposeHandoff} {
		for _, status := range []VerdictStatus{VerdictNeedsHuman, VerdictEscalate, VerdictHealthy, VerdictResolved} {
			session := looked(Verdict{Status: status, Summary: "which port?"})
			session.Purpose, session.Tier = purpose, TierSafeRepair
			require.Empty(t, session.Sightings(incidents, nil), "%s %s", purpose, status)
			require.Empty(t, session.Heals(incidents, []string{"incident-1"}), "%s %s", purpose, status)
		}
	}
}

// TestLookIsAnInterval checks that a look concludes nothing about an incident that was resolved or opened while the
// look ran.
func TestLookIsAnInterval(t *testing.T) {
	t.Parallel()
	began, ended := incidentNoon, incidentNoon.Add(5*time.Minute)
	look := func(verdict Verdict) Session {
		session := looked(verdict)
		session.StartedAt, session.EndedAt = began, ended
		return session
	}
	own := Look{ChainRun: ChainRun{ChainID: "look"}}
	finds := look(Verdict{Status: VerdictEscalate, Services: []string{"web"}, Known: []KnownIncident{{ID: "incident-1", Status: IncidentUnchanged}}})
	for name, tt := range map[string]struct {
		resolved time.Time
		how      IncidentEnd
		reason   string
	}{
		"repaired meanwhile": {began.Add(2 * time.Minute), IncidentRepaired, "incident-1 (web: slow) was resolved by chain other while the session ran"},
		"closed meanwhile":   {began.Add(2 * time.Minute), IncidentClosed, "incident-1 (web: slow) was resolved by other while the session ran"},
		"repaired before":    {began.Add(-time.Minute), IncidentRepaired, ""},
	} {
		incident := Incident{
			ID: "incident-1", Services: []string{"web"}, Summary: "slow", ResolvedAt: tt.resolved, ResolvedBy: "other", Resolution: tt.how,
			Chains: []IncidentChain{worked("other", ChainEnded, OutcomeResolved)},
		}
		recognition := Recognize(finds, []Incident{incident}, own, ended)
		if tt.reason == "" {
			require.Len(t, recognition.New, 1, name)
			continue
		}
		require.True(t, recognition.AllKnown(), name)
		require.Equal(t, tt.reason, recognition.describe(), name)
	}

	reset := finds
	reset.ChainID = "other"
	own.ChainID = "other"
	repaired := Incident{
		ID: "incident-1", Services: []string{"web"}, ResolvedAt: began.Add(time.Minute), ResolvedBy: "other", Resolution: IncidentRepaired,
	}
	recognition := Recognize(reset, []Incident{repaired}, own, ended)
	require.Len(t, recognition.New, 1, "the chain itself was reset to before its repair")

	healthy := look(Verdict{Status: VerdictHealthy, Known: []KnownIncident{{ID: "incident-1", Status: IncidentGone}}})
	opened := Incident{ID: "incident-1", Services: []string{"web"}, OpenedAt: began.Add(time.Minute), LastSeenAt: began.Add(time.Minute)}
	returned := Incident{ID: "incident-1", Services: []string{"web"}, ReturnedAt: began.Add(time.Minute), LastSeenAt: began.Add(time.Minute)}
	require.Empty(t, healthy.Heals([]Incident{opened}, nil))
	require.Empty(t, healthy.Heals([]Incident{returned}, nil))
	require.NotEmpty(t, healthy.Heals([]Incident{opened}, []string{"incident-1"}), "its chain was reset, and looks again")
	opened.OpenedAt = began.Add(-time.Minute)
	require.NotEmpty(t, healthy.Heals([]Incident{opened}, nil), "its agent was told of it, and has looked")
}

// TestResolvedPartOfAFault checks a fault that the agent reports as one, and of which another chain repaired a part
// while the look ran. The rest is new, and the part is not repaired again.
func TestResolvedPartOfAFault(t *testing.T) {
	t.Parallel()
	mail := Incident{
		ID: "incident-5", Services: []string{"mail"}, Kind: "slow", ResolvedAt: incidentNoon.Add(2 * time.Minute), ResolvedBy: "other",
		Resolution: IncidentRepaired,
	}
	session := looked(Verdict{Status: VerdictEscalate, Services: []string{"dns", "mail"}, Summary: "several services are broken"})
	session.StartedAt, session.EndedAt = incidentNoon, incidentNoon.Add(5*time.Minute)
	recognition := Recognize(session, []Incident{mail}, Look{ChainRun: ChainRun{ChainID: "look"}}, session.EndedAt)
	require.Equal(t, []string{"dns"}, recognition.NewServices())
	require.Nil(t, recognition.New[0].Incident)
	require.Len(t, recognition.Known, 1)
	require.True(t, recognition.Known[0].Overtaken)

	mail.ResolvedAt, mail.Resolution = time.Time{}, ""
	recognition = Recognize(session, []Incident{mail}, Look{ChainRun: ChainRun{ChainID: "look"}}, session.EndedAt)
	require.Equal(t, []string{"dns", "mail"}, recognition.NewServices(), "an open incident that spreads is one fault")
}

// TestIssuesOfAnIncidentWithoutKind checks two issues of an incident without a kind, one of which fits an older
// incident by its kind. Another chain repairs the open incident, so neither is repaired again.
func TestIssuesOfAnIncidentWithoutKind(t *testing.T) {
	t.Parallel()
	older := Incident{ID: "incident-2", Services: []string{"web"}, Kind: "slow", ResolvedAt: incidentNoon.Add(-8 * time.Hour)}
	both := Incident{ID: "incident-5", Services: []string{"files", "web"}, Chains: []IncidentChain{worked("other", ChainRepairing, "")}}
	session := looked(Verdict{Status: VerdictEscalate, Issues: []Issue{issue("files", ""), issue("web", "slow")}})
	recognition := Recognize(session, []Incident{older, both}, Look{ChainRun: ChainRun{ChainID: "look"}}, incidentNoon)
	require.True(t, recognition.AllKnown())
	require.Equal(t, "incident-5", recognition.KnownIssue(1).Incident.ID)
}

// TestHealedPartOfAnIncident checks a look that names an incident of two services and finds one of them healthy. Only
// the other one is repaired.
func TestHealedPartOfAnIncident(t *testing.T) {
	t.Parallel()
	incident := Incident{ID: "incident-5", Services: []string{"mail", "web"}, Summary: "both are slow"}
	verdict := Verdict{
		Status: VerdictEscalate, Summary: "slow", Known: []KnownIncident{{ID: incident.ID, Status: IncidentUnchanged}},
		Checks: []CheckResult{{Service: "Mail", Status: CheckHealthy}, {Service: "web", Status: CheckDegraded}},
	}
	own := Look{ChainRun: ChainRun{ChainID: "look"}}
	recognition := Recognize(looked(verdict), []Incident{incident}, own, incidentNoon)
	require.Equal(t, []string{"web"}, recognition.NewServices())

	verdict.Checks[1].Status = CheckHealthy
	recognition = Recognize(looked(verdict), []Incident{incident}, own, incidentNoon)
	require.Equal(t, incident.Services, recognition.NewServices(), "the agent says that it is not over")
}

// TestWorseByAnotherService checks that a failed check of one service does not make the incident of another one worse.
func TestWorseByAnotherService(t *testing.T) {
	t.Parallel()
	incident := Incident{ID: "incident-1", Services: []string{"web"}, Severity: SeverityWarning}
	for service, want := range map[string]IncidentNews{"db": IncidentUnchanged, "web": IncidentWorse} {
		session := looked(Verdict{
			Status: VerdictEscalate, Services: []string{"web"}, Checks: []CheckResult{{Service: service, Status: CheckDown}},
		})
		require.Equal(t, want, session.Sightings([]Incident{incident}, nil)[0].News, service)
	}
}

// TestMergedIncidents checks a fault that the agent reports as one and that is two open incidents.
func TestMergedIncidents(t *testing.T) {
	t.Parallel()
	waits := []IncidentChain{worked("other", ChainWaiting, "")}
	web := Incident{ID: "incident-1", Services: []string{"web"}, Kind: "down", Chains: waits}
	db := Incident{ID: "incident-2", Services: []string{"db"}, Chains: waits}
	one := Issue{Services: []string{"web", "db"}, Kind: "down", Summary: "both are down", Severity: SeverityWarning}
	plain := Verdict{Status: VerdictEscalate, Services: one.Services, Kind: one.Kind}
	recognition := Recognize(looked(plain), []Incident{web, db}, Look{ChainRun: ChainRun{ChainID: "own"}}, incidentNoon)
	require.True(t, recognition.AllKnown())
	require.Len(t, recognition.Known, 2)

	db.Chains = nil
	recognition = Recognize(looked(plain), []Incident{web, db}, Look{ChainRun: ChainRun{ChainID: "own"}}, incidentNoon)
	require.Len(t, recognition.Known, 1)
	require.Equal(t, []string{"db"}, recognition.NewServices(), "web is not repaired again")

	beside := Verdict{Status: VerdictEscalate, Issues: []Issue{one, issue("mail", "")}}
	recognition = Recognize(looked(beside), []Incident{web, db}, Look{ChainRun: ChainRun{ChainID: "own"}}, incidentNoon)
	split := recognition.SplitIssues(beside)
	require.Len(t, split.Issues, 2)
	require.Equal(t, []string{"db"}, split.Issues[0].Services)
	require.Nil(t, recognition.KnownIssue(0))
	require.Nil(t, recognition.KnownIssue(1))
}

// TestSplitIssues checks that issues of one incident become one issue, unless another chain takes care of the incident.
func TestSplitIssues(t *testing.T) {
	t.Parallel()
	incident := Incident{ID: "incident-1", Services: []string{"web", "db"}, Kind: "down"}
	verdict := Verdict{Status: VerdictEscalate, Issues: []Issue{issue("web", "down"), issue("mail", ""), issue("db", "down")}}
	recognition := Recognize(looked(verdict), []Incident{incident}, Look{}, incidentNoon)
	split := recognition.SplitIssues(verdict)
	require.Len(t, split.Issues, 2)
	require.Equal(t, []string{"web", "db"}, split.Issues[0].Services)
	require.Equal(t, []string{"mail"}, split.Issues[1].Services)
	require.Equal(t, "web is broken; db is broken", split.Issues[0].Summary)
	require.Len(t, verdict.Issues, 3)

	incident.Chains = []IncidentChain{worked("other", ChainWaiting, "")}
	recognition = Recognize(looked(verdict), []Incident{incident}, Look{ChainRun: ChainRun{ChainID: "own"}}, incidentNoon)
	split = recognition.SplitIssues(verdict)
	require.Len(t, split.Issues, 3)
	require.NotNil(t, recognition.KnownIssue(0))
	require.Nil(t, recognition.KnownIssue(1))
	require.NotNil(t, recognition.KnownIssue(2))
}
