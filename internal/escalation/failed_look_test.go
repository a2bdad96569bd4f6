package escalation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// endedLook returns a look at scope that ended with this status and without a verdict.
func endedLook(status SessionStatus, scope ...string) Session {
	return Session{
		Tier: TierObserve, Scope: scope, StartedAt: incidentNoon, EndedAt: incidentNoon.Add(time.Minute),
		Report: Report{Status: status, Error: "the key has expired"},
	}
}

// failedLook returns the open incident of a look at services that failed before noon.
func failedLook(id string, services ...string) Incident {
	return Incident{
		ID: id, Services: services, Kind: KindLookFailed, Severity: SeverityWarning, LastSeenAt: incidentNoon.Add(-time.Hour),
		Chains: []IncidentChain{worked("other", ChainWaiting, "")},
	}
}

// TestLookFailed checks which ends of a session are a look that failed. Those that no person need act on are none.
func TestLookFailed(t *testing.T) {
	t.Parallel()
	for status, want := range map[SessionStatus]bool{
		SessionRunning: false, SessionCompleted: true, SessionFailed: true, SessionTimedOut: true, SessionBudgetExhausted: true,
		SessionResumeFailed: false, SessionTranscriptLost: false, SessionStopped: false,
	} {
		session := endedLook(status)
		require.Equal(t, want, session.LookFailed(), status)
		for _, purpose := range []Purpose{PurposeContinuation, PurposeRecheck, PurposeHandoff} {
			session.Purpose = purpose
			require.False(t, session.LookFailed(), "%s %s", status, purpose)
		}
		session.Purpose, session.Tier = PurposeTier, TierSafeRepair
		require.False(t, session.LookFailed(), status)
	}
	for _, status := range []VerdictStatus{VerdictHealthy, VerdictResolved, VerdictEscalate, VerdictNeedsHuman} {
		session := looked(Verdict{Status: status})
		require.False(t, session.LookFailed(), status)
	}
	session := looked(Verdict{Status: VerdictFailed, Summary: "no tool works"})
	require.True(t, session.LookFailed(), "it names no service")
	require.Equal(t, "tier 1 could not do its work: no tool works", session.Sightings(nil, nil)[0].Fault.Summary)
	session.Verdict.Services = []string{"web"}
	require.False(t, session.LookFailed(), "it has found something")
}

// TestSightingsOfAFailedLook checks that failed looks and other faults never match each other, and which failed looks
// are one incident.
func TestSightingsOfAFailedLook(t *testing.T) {
	t.Parallel()
	all, web, both := failedLook("incident-1"), failedLook("incident-1", "web"), failedLook("incident-1", "db", "web")
	down, unnamed, nowhere := failedLook("incident-1", "web"), failedLook("incident-1", "web"), failedLook("incident-1")
	down.Kind, unnamed.Kind, nowhere.Kind = "down", "", ""
	over, overAll := web, all
	over.ResolvedAt, overAll.ResolvedAt = incidentNoon, incidentNoon
	for name, tt := range map[string]struct {
		incident Incident
		scope    []string
		want     bool
	}{
		"all services, twice":             {all, nil, true},
		"one of all services":             {all, []string{"web"}, true},
		"one service, twice":              {web, []string{"Web "}, true},
		"one of two services":             {both, []string{"web"}, true},
		"more services":                   {web, []string{"db", "web"}, false},
		"all services, after one":         {web, nil, false},
		"another service":                 {web, []string{"db"}, false},
		"a fault of the service":          {down, []string{"web"}, false},
		"a fault without a kind":          {unnamed, []string{"web"}, false},
		"a fault without a service":       {nowhere, nil, false},
		"it comes back":                   {over, []string{"web"}, true},
		"all come back":                   {overAll, nil, true},
		"one does not bring back all":     {overAll, []string{"web"}, false},
		"all do not bring back a service": {over, nil, false},
	} {
		session := endedLook(SessionFailed, tt.scope...)
		sightings := session.Sightings([]Incident{tt.incident}, nil)
		require.Len(t, sightings, 1, name)
		require.Equal(t, tt.want, sightings[0].Incident != nil, name)
		require.Equal(t, Issue{
			Services: tt.scope, Kind: KindLookFailed, Severity: SeverityWarning,
			Summary: "tier 1 ended without a verdict (failed): the key has expired",
		}, sightings[0].Fault, name)
		if tt.want {
			require.True(t, sightings[0].Covered(), name)
			require.NotEqual(t, IncidentWorse, sightings[0].News, name)
		}
	}
	session := endedLook(SessionFailed)
	require.Empty(t, session.Sightings([]Incident{down}, []string{"incident-1"}), "not the first look")
	require.Len(t, session.Sightings([]Incident{all}, []string{"incident-1"}), 1, "the first look, again")
	session = endedLook(SessionStopped)
	require.Empty(t, session.Sightings([]Incident{all}, nil))

	// An agent that names the incident or its kind does not reach it.
	names := looked(Verdict{
		Status: VerdictEscalate, Services: []string{"web"}, Kind: "down",
		Known: []KnownIncident{{ID: "incident-1", Status: IncidentUnchanged}},
	})
	for _, incident := range []Incident{all, web} {
		sightings := names.Sightings([]Incident{incident}, nil)
		require.Len(t, sightings, 1)
		require.Nil(t, sightings[0].Incident)
	}
	decoded, err := DecodeVerdict([]byte(`{"status": "escalate", "summary": "s", "services_affected": ["web"], "kind": "Look failed",
		"issues": [{"summary": "s", "services": ["web"], "severity": "info", "kind": "look_failed"}]}`))
	require.NoError(t, err)
	require.Empty(t, decoded.Kind+decoded.Issues[0].Kind)
}

// TestHealsAFailedLook checks which sessions end a failed look.
func TestHealsAFailedLook(t *testing.T) {
	t.Parallel()
	verdict := func(status VerdictStatus, services ...string) Session {
		session := endedLook(SessionCompleted)
		session.Verdict = &Verdict{Status: status, Services: services}
		return session
	}
	scoped, requested := verdict(VerdictHealthy), verdict(VerdictHealthy)
	scoped.Scope, requested.HasRequest = []string{"web", "db"}, true
	continued, recheck, handoff, repair := verdict(VerdictHealthy), verdict(VerdictHealthy), verdict(VerdictHealthy), verdict(VerdictResolved)
	continued.Purpose, recheck.Purpose, handoff.Purpose, repair.Tier = PurposeContinuation, PurposeRecheck, PurposeHandoff, TierSafeRepair
	early := verdict(VerdictHealthy)
	early.StartedAt = incidentNoon.Add(-2 * time.Hour)
	names := verdict(VerdictFailed)
	names.Verdict.Known = []KnownIncident{{ID: "incident-1", Status: IncidentGone}}
	for name, tt := range map[string]struct {
		session  Session
		incident Incident
		want     bool
	}{
		"healthy":                     {verdict(VerdictHealthy), failedLook("incident-1"), true},
		"it finds a fault":            {verdict(VerdictEscalate, "web"), failedLook("incident-1"), true},
		"of a service that is down":   {verdict(VerdictEscalate, "web"), failedLook("incident-1", "web"), true},
		"it cannot repair a service":  {verdict(VerdictFailed, "web"), failedLook("incident-1"), true},
		"it could not look":           {verdict(VerdictFailed), failedLook("incident-1"), false},
		"it names what it cannot see": {names, failedLook("incident-1"), false},
		"all services cover one":      {verdict(VerdictHealthy), failedLook("incident-1", "web"), true},
		"two services cover one":      {scoped, failedLook("incident-1", "web"), true},
		"two services, and another":   {scoped, failedLook("incident-1", "web", "mail"), false},
		"two services are not all":    {scoped, failedLook("incident-1"), false},
		"with a request":              {requested, failedLook("incident-1"), true},
		"a continued look":            {continued, failedLook("incident-1"), true},
		"a recheck":                   {recheck, failedLook("incident-1"), false},
		"a handoff":                   {handoff, failedLook("incident-1"), false},
		"a repair":                    {repair, failedLook("incident-1"), false},
		"a look that began before it": {early, failedLook("incident-1"), false},
		"without a verdict":           {endedLook(SessionFailed), failedLook("incident-1"), false},
	} {
		require.Equal(t, tt.want, len(tt.session.Heals([]Incident{tt.incident}, nil)) == 1, name)
	}
	require.NotEmpty(t, early.Heals([]Incident{failedLook("incident-1")}, []string{"incident-1"}), "its chain's own")
	require.Empty(t, repair.Heals([]Incident{failedLook("incident-1")}, []string{"incident-1"}), "no repair is a look")
	repair.Verdict.Services = []string{"web"}
	down := failedLook("incident-2", "web")
	down.Kind = "down"
	require.Equal(t, []string{"incident-2"}, repair.Heals([]Incident{failedLook("incident-1"), down}, []string{"incident-1"}),
		"a chain whose look failed has no fault of its own")
}

// TestDecideAFailedLook checks that a failed look is known while somebody takes care of an earlier one, and only then.
func TestDecideAFailedLook(t *testing.T) {
	t.Parallel()
	policy := Policy{Tiers: make([]TierPolicy, 3), MaxTier: TierFullRepair, Gate: GatePolicy{Timeout: Duration(time.Hour)}}
	look := Look{ChainRun: ChainRun{ChainID: "own"}}
	over := failedLook("incident-1")
	over.ResolvedAt, over.Chains = incidentNoon, []IncidentChain{worked("other", ChainEnded, OutcomeResolved)}
	asked := failedLook("incident-1")
	asked.Chains = []IncidentChain{worked("other", ChainEnded, OutcomeNeedsHuman)}
	aborted := failedLook("incident-1")
	aborted.Chains = []IncidentChain{worked("other", ChainEnded, OutcomeAborted)}
	for name, tt := range map[string]struct {
		incidents []Incident
		known     bool
	}{
		"the first one":               {nil, false},
		"a chain waits":               {[]Incident{failedLook("incident-1")}, true},
		"nobody has acted":            {[]Incident{asked}, true},
		"a person has ended its gate": {[]Incident{aborted}, false},
		"it comes back":               {[]Incident{over}, false},
		"a look at less waits":        {[]Incident{failedLook("incident-1", "web")}, false},
	} {
		for _, status := range []SessionStatus{SessionCompleted, SessionFailed, SessionTimedOut, SessionBudgetExhausted} {
			session := endedLook(status)
			recognition := Recognize(session, tt.incidents, look, incidentNoon)
			decision := Gated(policy, Decide(policy, session, DecisionInput{Recognition: &recognition}))
			if !tt.known {
				require.Equal(t, DecisionGate, decision.Action, "%s, %s", name, status)
				continue
			}
			require.Equal(t, OutcomeKnown, decision.Outcome, "%s, %s", name, status)
			require.Equal(t, RuleKnown, decision.Rule)
			require.Contains(t, decision.Reason, "the key has expired; incident-1 (all services: ")
		}
	}
	session := endedLook(SessionFailed)
	recognition := Recognize(session, []Incident{failedLook("incident-1")}, look, incidentNoon)
	requested := Requested(policy, session, TierSafeRepair, Decide(policy, session, DecisionInput{Recognition: &recognition}))
	require.Equal(t, RuleOperator, requested.Rule)
}

// TestDecideALookAnew checks the decision on a look anew, after another look had a result.
func TestDecideALookAnew(t *testing.T) {
	t.Parallel()
	policy := Policy{Tiers: make([]TierPolicy, 3), MaxTier: TierFullRepair}
	for status, want := range map[VerdictStatus]Decision{
		VerdictHealthy:    {Action: DecisionComplete, Outcome: OutcomeResolved, Rule: RuleHealed, Reason: "tier 1 looked again and found everything healthy"},
		VerdictEscalate:   {Action: DecisionEscalate, Tier: TierSafeRepair, Rule: RuleVerdict, Reason: "tier 1 asks for tier 2"},
		VerdictNeedsHuman: {Action: DecisionComplete, Outcome: OutcomeNeedsHuman, Rule: RuleVerdict, Reason: "tier 1 asks for a person"},
	} {
		require.Equal(t, want, Decide(policy, looked(Verdict{Status: status}), DecisionInput{Healed: true}), status)
	}
}

func TestMayRecheck(t *testing.T) {
	t.Parallel()
	closed := func(action GateAction, actor string) Gate {
		return Gate{Answer: &GateClosing{Action: action, Actor: actor}}
	}
	again := closed(GateRecheck, "")
	require.True(t, MayRecheck(nil))
	require.True(t, MayRecheck([]Gate{again}))
	require.False(t, MayRecheck([]Gate{again, again}))
	require.True(t, MayRecheck([]Gate{again, again, closed(GateFix, "ada")}), "a person has answered since")
}
