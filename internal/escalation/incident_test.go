package escalation

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var incidentNoon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// worked returns the work of a chain on an incident, an hour before noon.
func worked(chainID string, status ChainStatus, outcome Outcome) IncidentChain {
	return IncidentChain{ChainID: chainID, ChainProgress: ChainProgress{Status: status, Outcome: outcome, At: incidentNoon.Add(-time.Hour)}}
}

// looked returns a look with this verdict.
func looked(verdict Verdict) Session {
	return Session{Tier: TierObserve, StartedAt: incidentNoon, Report: Report{Status: SessionCompleted, Verdict: &verdict}}
}

func TestHandlerOfAnIncident(t *testing.T) {
	t.Parallel()
	waits := func(until time.Duration) IncidentChain {
		chain := worked("waits", ChainWaiting, "")
		chain.Until = incidentNoon.Add(until)
		return chain
	}
	overridden := worked("overridden", ChainEnded, OutcomeOverridden)
	asked := worked("asked", ChainEnded, OutcomeNeedsHuman)
	expired := expiredAtGate("expired", complete(OutcomeNeedsHuman, RuleVerdict, "it asks for a person"))
	limited := worked("limited", ChainEnded, OutcomeNeedsHuman)
	limited.Rule = RuleCooldown
	earlier := worked("own", ChainEnded, OutcomeNeedsHuman)
	earlier.FirstRunID = "run-0"
	dry := worked("dry", ChainEnded, OutcomeSuppressed)
	failed := worked("failed", ChainEnded, OutcomeFailed)
	failed.Rule = RuleNoVerdict
	split := worked("split", ChainEnded, OutcomeFailed)
	split.Rule = RuleIssues
	for name, tt := range map[string]struct {
		incident Incident
		want     string
		state    IncidentState
	}{
		"nobody":              {Incident{}, "", IncidentOpen},
		"looking":             {Incident{Chains: []IncidentChain{worked("looks", ChainLooking, "")}}, "", IncidentOpen},
		"repairing":           {Incident{Chains: []IncidentChain{worked("repairs", ChainRepairing, "")}}, "repairs", IncidentRepairing},
		"waiting":             {Incident{Chains: []IncidentChain{waits(time.Hour)}}, "waits", IncidentWaiting},
		"late":                {Incident{Chains: []IncidentChain{waits(-30 * time.Minute)}}, "waits", IncidentWaiting},
		"gone":                {Incident{Chains: []IncidentChain{waits(-2 * time.Hour)}}, "", IncidentWaiting},
		"its own":             {Incident{Chains: []IncidentChain{worked("own", ChainRepairing, "")}}, "", IncidentRepairing},
		"of its ID, earlier":  {Incident{Chains: []IncidentChain{earlier}}, "own", IncidentWaiting},
		"ended":               {Incident{Chains: []IncidentChain{worked("ended", ChainEnded, OutcomeAborted)}}, "", IncidentOpen},
		"accepted":            {Incident{Chains: []IncidentChain{overridden}}, "overridden", IncidentOpen},
		"accepted, and worse": {Incident{Chains: []IncidentChain{overridden}, WorseAt: incidentNoon}, "", IncidentOpen},
		"worse, then accepted": {
			Incident{Chains: []IncidentChain{overridden}, WorseAt: overridden.At.Add(-time.Minute)}, "overridden", IncidentOpen,
		},
		"accepted, and came back": {Incident{Chains: []IncidentChain{overridden}, ReturnedAt: incidentNoon}, "", IncidentOpen},
		"accepted, then aborted": {
			Incident{Chains: []IncidentChain{overridden, worked("ended", ChainEnded, OutcomeAborted)}}, "", IncidentOpen,
		},
		"nobody has acted":            {Incident{Chains: []IncidentChain{asked}}, "asked", IncidentWaiting},
		"nobody has answered":         {Incident{Chains: []IncidentChain{expired}}, "expired", IncidentWaiting},
		"nobody has acted, but worse": {Incident{Chains: []IncidentChain{asked}, WorseAt: incidentNoon}, "", IncidentOpen},
		"nobody has acted, but back":  {Incident{Chains: []IncidentChain{expired}, ReturnedAt: incidentNoon}, "", IncidentOpen},
		"a limit that passes":         {Incident{Chains: []IncidentChain{limited}}, "", IncidentOpen},
		"tried again":                 {Incident{Chains: []IncidentChain{asked, worked("ended", ChainEnded, OutcomeFailed)}}, "", IncidentOpen},
		"asked, then a dry run":       {Incident{Chains: []IncidentChain{asked, dry}}, "asked", IncidentWaiting},
		"accepted, then a dry run":    {Incident{Chains: []IncidentChain{overridden, dry}}, "overridden", IncidentOpen},
		"failed":                      {Incident{Chains: []IncidentChain{failed}}, "failed", IncidentWaiting},
		"its issue failed":            {Incident{Chains: []IncidentChain{split}}, "", IncidentOpen},
		"resolved":                    {Incident{ResolvedAt: incidentNoon}, "", IncidentResolved},
	} {
		handler, handled := tt.incident.Handler(ChainRun{ChainID: "own"}, incidentNoon)
		require.Equal(t, tt.want != "", handled, name)
		if handled {
			require.Equal(t, tt.want, handler.ChainID, name)
		}
		require.Equal(t, tt.state, tt.incident.StateOf(), name)
	}
}

// expiredAtGate returns the work of a chain that opened a gate for the decision. Nobody answered the gate, and it
// expired.
func expiredAtGate(chainID string, decision Decision) IncidentChain {
	policy := Policy{Tiers: make([]TierPolicy, 3), MaxTier: TierFullRepair, Gate: GatePolicy{Timeout: Duration(time.Hour)}}
	at := incidentNoon.Add(-time.Hour)
	gate := NewGate(policy, GateInput{Number: 1, At: at.Add(-time.Hour), Decision: Gated(policy, decision), Tier: TierSafeRepair})
	ending, _ := gate.Ending(GateClosing{Action: gate.OnTimeout, At: at})
	return IncidentChain{ChainID: chainID, ChainProgress: ProgressOf(policy, ending, at)}
}

// TestExpiredGateOfARefusal checks who takes care of an incident after the gate of a refused repair has expired. If the
// limit passes, nobody does, so that the next chain tries again.
func TestExpiredGateOfARefusal(t *testing.T) {
	t.Parallel()
	for rule, passes := range map[Rule]bool{
		RuleCooldown: true, RuleServiceBusy: true, RuleEscalationLimit: true, RuleDayBudget: true, RuleChainBudget: false, RuleMaxTier: false,
	} {
		ended := expiredAtGate("refused", DecideRefused(Admission{Rule: rule, Reason: "it cannot start"}))
		require.Equal(t, OutcomeAborted, ended.Outcome, rule)
		incident := Incident{Chains: []IncidentChain{ended}}
		_, handled := incident.Handler(ChainRun{ChainID: "own"}, incidentNoon)
		require.Equal(t, !passes, handled, rule)
		require.Equal(t, map[bool]IncidentState{true: IncidentOpen, false: IncidentWaiting}[passes], incident.StateOf(), rule)
	}
}

func TestReturnsOfAnIncident(t *testing.T) {
	t.Parallel()
	limit := Limit{Max: 3, Window: Duration(24 * time.Hour)}
	incident := Incident{Returns: []time.Time{incidentNoon.Add(-25 * time.Hour), incidentNoon.Add(-time.Hour)}}
	require.Equal(t, 1, incident.ReturnsWithin(limit, incidentNoon))
	incident.ResolvedAt, incident.Resolution = incidentNoon, IncidentHealed
	require.Equal(t, 1, incident.ReturnsWithin(limit, incidentNoon), "it was not repaired")
	incident.Resolution = IncidentRepaired
	require.Equal(t, 2, incident.ReturnsWithin(limit, incidentNoon), "it returns now")
}

func TestDecideReturned(t *testing.T) {
	t.Parallel()
	policy := Policy{MaxTier: TierFullRepair, Returns: Limit{Max: 1, Window: Duration(time.Hour)}}
	incident := Incident{ID: "incident-1", Chains: []IncidentChain{{Tier: TierSafeRepair}}}
	decision := DecideReturned(policy, incident, TierSafeRepair, incidentNoon)
	require.Equal(t, DecisionEscalate, decision.Action)
	require.Equal(t, TierFullRepair, decision.Tier)

	incident.Chains = append(incident.Chains, IncidentChain{Tier: TierFullRepair})
	decision = DecideReturned(policy, incident, TierSafeRepair, incidentNoon)
	require.Equal(t, OutcomeNeedsHuman, decision.Outcome, "tier 3 was tried")
	require.Equal(t, TierSafeRepair, decision.Tier, "what a person may let run")

	escalate := Session{Tier: TierObserve, Report: Report{Status: SessionCompleted, Verdict: &Verdict{Status: VerdictEscalate}}}
	incident.Returns = []time.Time{incidentNoon}
	back := &Recognition{New: []Sighting{{Incident: &incident}}, At: incidentNoon}
	require.Equal(t, RuleReturned, Decide(policy, escalate, DecisionInput{Recognition: back}).Rule)
	require.Equal(t, RuleVerdict, Decide(policy, escalate, DecisionInput{Recognition: back, MinTier: TierSafeRepair}).Rule, "a recheck")

	policy.MaxTier, incident.Chains = TierSafeRepair, nil
	require.Equal(t, OutcomeNeedsHuman, DecideReturned(policy, incident, TierSafeRepair, incidentNoon).Outcome)
}

func TestRecognize(t *testing.T) {
	t.Parallel()
	waits := worked("other", ChainWaiting, "")
	web := Incident{ID: "incident-1", Services: []string{"web"}, Severity: SeverityWarning, Chains: []IncidentChain{waits}}
	accepted := web
	accepted.Chains = []IncidentChain{worked("other", ChainEnded, OutcomeOverridden)}
	finds := func(services ...string) Verdict {
		return Verdict{Status: VerdictEscalate, Summary: "broken", Services: services}
	}
	down := finds("web")
	down.Checks = []CheckResult{{Service: "web", Status: CheckDown}}
	named := finds("web", "db")
	named.Known = []KnownIncident{{ID: "incident-1", Status: IncidentUnchanged}}
	full := web
	full.Kind = "disk_full"
	another := finds("web")
	another.Kind, another.Known = "down", named.Known
	beside := finds("db")
	beside.Issues = []Issue{{Summary: "the disk is full", Services: []string{"db"}}}
	beside.Known = []KnownIncident{{ID: "incident-1", Status: IncidentWorse, Note: "it is down"}}
	abandoned := web
	abandoned.Chains = []IncidentChain{worked("other", ChainEnded, OutcomeFailed)}
	both := beside
	both.Issues = []Issue{{Summary: "web is down", Services: []string{"web"}}}
	healed := beside
	healed.Known = []KnownIncident{{ID: "incident-1", Status: IncidentGone}}
	back := web
	back.ResolvedAt, back.Resolution = incidentNoon.Add(-time.Minute), IncidentHealed
	ended := back
	ended.Chains = accepted.Chains
	for name, tt := range map[string]struct {
		verdict    Verdict
		incident   Incident
		known, new int
		worse      bool
	}{
		"known":                       {finds("Web "), web, 1, 0, false},
		"more services":               {finds("web", "db"), web, 0, 1, false},
		"named, and more services":    {named, web, 1, 1, false},
		"named, and another fault":    {another, full, 1, 1, false},
		"worse":                       {down, web, 1, 0, true},
		"worse, beside an issue":      {beside, web, 1, 1, true},
		"of nobody, beside an issue":  {beside, abandoned, 0, 2, false},
		"an issue, and named":         {both, web, 1, 0, true},
		"healed, beside an issue":     {healed, web, 0, 1, false},
		"back, its chain waits":       {finds("web"), back, 1, 0, false},
		"back, its chain has ended":   {finds("web"), ended, 0, 1, false},
		"accepted":                    {finds("web"), accepted, 1, 0, false},
		"accepted, and worse":         {down, accepted, 0, 1, false},
		"nothing is wrong":            {Verdict{Status: VerdictHealthy}, web, 0, 0, false},
		"a failure without a service": {Verdict{Status: VerdictFailed}, web, 0, 1, false},
	} {
		recognition := Recognize(looked(tt.verdict), []Incident{tt.incident}, Look{ChainRun: ChainRun{ChainID: "own"}}, incidentNoon)
		require.Len(t, recognition.Known, tt.known, name)
		require.Len(t, recognition.New, tt.new, name)
		require.Equal(t, tt.known > 0 && tt.new == 0, recognition.AllKnown(), name)
		require.Equal(t, tt.worse, tt.known > 0 && recognition.Known[0].News == IncidentWorse, name)
	}
	recognition := Recognize(looked(named), []Incident{web}, Look{ChainRun: ChainRun{ChainID: "own"}}, incidentNoon)
	require.Equal(t, []string{"db"}, recognition.NewServices())

	asked := web
	asked.Chains = []IncidentChain{worked("other", ChainEnded, OutcomeNeedsHuman)}
	for manual, known := range map[bool]int{false: 1, true: 0} {
		recognition = Recognize(looked(finds("web")), []Incident{asked}, Look{ChainRun: ChainRun{ChainID: "own"}, Manual: manual}, incidentNoon)
		require.Len(t, recognition.Known, known, "a person acts by starting a chain")
	}

	asked.Chains[0].MaxTier = TierSafeRepair
	limited := worked("limited", ChainEnded, OutcomeNeedsHuman) // later, a person's chain was allowed less
	limited.MaxTier = TierObserve
	asked.Chains = append(asked.Chains, limited)
	for maxTier, known := range map[Tier]int{TierObserve: 1, TierSafeRepair: 1, TierFullRepair: 0} {
		recognition = Recognize(looked(finds("web")), []Incident{asked}, Look{ChainRun: ChainRun{ChainID: "own"}, MaxTier: maxTier}, incidentNoon)
		require.Len(t, recognition.Known, known, "a person acts by raising the highest tier")
	}

	abandoned.Returns = []time.Time{incidentNoon.Add(-time.Minute)}
	recognition = Recognize(looked(beside), []Incident{abandoned}, Look{ChainRun: ChainRun{ChainID: "own"}}, incidentNoon)
	require.Equal(t, []string{"db", "web"}, recognition.NewServices())
	once := Limit{Max: 1, Window: Duration(time.Hour)}
	require.Nil(t, recognition.Returned(once, 0), "the issue is another fault")
	verdict := recognition.SplitIssues(beside)
	require.Len(t, beside.Issues, 1)
	require.Equal(t, []string{"web"}, verdict.Issues[1].Services, "a split chain repairs it, too")
	require.Equal(t, "incident-1", recognition.Returned(once, 1).ID)
	require.Nil(t, recognition.KnownIssue(1))
}

// TestRecheckOfTwoChains checks two chains that wait with one incident and look again at the same time. Exactly one
// chain must leave the incident to the other.
func TestRecheckOfTwoChains(t *testing.T) {
	t.Parallel()
	first, second := worked("first", ChainWaiting, ""), worked("second", ChainWaiting, "")
	first.Since, second.Since = incidentNoon.Add(-2*time.Hour), incidentNoon.Add(-time.Hour)
	tried, repairs, together, gone := second, second, second, second
	tried.Tier, repairs.Status, together.Since = TierSafeRepair, ChainRepairing, first.Since
	gone.Status, gone.Outcome = ChainEnded, OutcomeNeedsHuman
	for name, tt := range map[string]struct {
		second IncidentChain
		leaves string // the chain that leaves the incident to the other one
	}{
		"one met it earlier":        {second, "second"},
		"one has tried a repair":    {tried, "first"},
		"one repairs":               {repairs, "first"},
		"both met it together":      {together, "second"},
		"one has ended for a human": {gone, "first"},
	} {
		incident := Incident{ID: "incident-1", Services: []string{"web"}, Chains: []IncidentChain{first, tt.second}}
		verdict := Verdict{Status: VerdictEscalate, Services: []string{"web"}}
		for _, id := range []string{"first", "second"} {
			recognition := Recognize(looked(verdict), []Incident{incident}, Look{ChainRun: ChainRun{ChainID: id}, Own: []string{"incident-1"}}, incidentNoon)
			if id == "first" || tt.second.Status != ChainEnded {
				require.Equal(t, id == tt.leaves, recognition.AllKnown(), "%s: %s", name, id)
			}
		}
		require.Len(t, incident.Chains, 2)
		require.Equal(t, []string{"first", "second"}, []string{incident.Chains[0].ChainID, incident.Chains[1].ChainID})
	}

	split := Incident{ID: "incident-1", Services: []string{"web"}, Chains: []IncidentChain{worked("split", ChainRepairing, ""), first}}
	issue := Look{ChainRun: ChainRun{ChainID: "first"}, Own: []string{"incident-1"}, ParentID: "split"}
	recognition := Recognize(looked(Verdict{Status: VerdictEscalate, Services: []string{"web"}}), []Incident{split}, issue, incidentNoon)
	require.Empty(t, recognition.Known, "its parent waits for it")
	sibling := Incident{ID: "incident-2", Services: []string{"web"}, Chains: []IncidentChain{worked("sibling", ChainRepairing, "")}}
	recognition = Recognize(looked(Verdict{Status: VerdictEscalate, Services: []string{"web"}}), []Incident{split, sibling}, issue, incidentNoon)
	require.Empty(t, recognition.Known, "a recheck is about the chain's own incident first")
}

// TestHealsOfARecheck checks that a healthy recheck without services heals only its chain's incidents. It looks at
// nothing else.
func TestHealsOfARecheck(t *testing.T) {
	t.Parallel()
	incidents := []Incident{{ID: "incident-1", Services: []string{"web"}}, {ID: "incident-2", Services: []string{"db"}}}
	session := Session{Tier: TierObserve, Purpose: PurposeTier, Report: Report{Verdict: &Verdict{Status: VerdictHealthy}}}
	require.Equal(t, []string{"incident-1", "incident-2"}, session.Heals(incidents, nil))
	session.Purpose = PurposeRecheck
	require.Equal(t, []string{"incident-2"}, session.Heals(incidents, []string{"incident-2"}))
	session.Scope = []string{"web"}
	require.Equal(t, []string{"incident-1"}, session.Heals(incidents, nil))
}

// TestHealsOfARequest checks a healthy look with an operator's request. It heals only incidents that a check or an
// entry of the verdict names, and the incidents of its chain.
func TestHealsOfARequest(t *testing.T) {
	t.Parallel()
	var incidents []Incident
	for i, service := range []string{"web", "db", "mail", "dns"} {
		incidents = append(incidents, Incident{ID: fmt.Sprintf("incident-%d", i+1), Services: []string{service}})
	}
	session := Session{Tier: TierObserve, HasRequest: true, Report: Report{Verdict: &Verdict{
		Status: VerdictHealthy, Checks: []CheckResult{{Service: "db", Status: CheckHealthy}},
		Known: []KnownIncident{{ID: "incident-3", Status: IncidentGone}},
	}}}
	require.Equal(t, []string{"incident-2", "incident-3", "incident-4"}, session.Heals(incidents, []string{"incident-4"}))
	session.Scope = []string{"web"}
	require.Equal(t, []string{"incident-2", "incident-3"}, session.Heals(incidents, nil))
}

// TestHealsWhatItCouldSee checks that a session does not end an incident that another chain has seen after the
// session's start. The exceptions are incidents of the session's own chain, incidents that the verdict names, and
// incidents that the session has repaired since.
func TestHealsWhatItCouldSee(t *testing.T) {
	t.Parallel()
	incidents := []Incident{{ID: "incident-1", Services: []string{"web"}, LastSeenAt: incidentNoon}}
	before, after := incidentNoon.Add(-time.Minute), incidentNoon.Add(time.Minute)
	named := Verdict{Status: VerdictHealthy, Known: []KnownIncident{{ID: "incident-1", Status: IncidentGone}}}
	for name, tt := range map[string]struct {
		verdict        Verdict
		started, ended time.Time
		own            []string
		want           bool
	}{
		"a look after it":              {Verdict{Status: VerdictHealthy}, incidentNoon, after, nil, true},
		"a look that began before":     {Verdict{Status: VerdictHealthy}, before, after, nil, false},
		"of the chain that owns it":    {Verdict{Status: VerdictHealthy}, before, after, []string{"incident-1"}, true},
		"a look that names it":         {named, before, after, nil, true},
		"a repair that ends after":     {Verdict{Status: VerdictResolved, Services: []string{"web"}}, before, after, nil, true},
		"a repair that ended before":   {Verdict{Status: VerdictResolved, Services: []string{"web"}}, before, before, nil, false},
		"a check of a look before":     {Verdict{Status: VerdictEscalate, Checks: []CheckResult{{Service: "web", Status: CheckHealthy}}}, before, after, nil, false},
		"a check of a look afterwards": {Verdict{Status: VerdictEscalate, Checks: []CheckResult{{Service: "web", Status: CheckHealthy}}}, incidentNoon, after, nil, true},
	} {
		session := Session{Tier: TierObserve, StartedAt: tt.started, EndedAt: tt.ended, Report: Report{Verdict: &tt.verdict}}
		require.Equal(t, tt.want, len(session.Heals(incidents, tt.own)) == 1, name)
	}
}

func TestMostImportantIncidents(t *testing.T) {
	t.Parallel()
	var incidents []Incident
	for i := range MaxKnownIncidents + 3 {
		severity := SeverityWarning
		if i == 0 {
			severity = SeverityCritical
		}
		incidents = append(incidents, Incident{ID: fmt.Sprint(i), Severity: severity, LastSeenAt: incidentNoon.Add(time.Duration(i) * time.Hour)})
	}
	kept := MostImportant(incidents)
	require.Len(t, kept, MaxKnownIncidents)
	require.Equal(t, "0", kept[0].ID)
	require.Equal(t, "4", kept[1].ID, "those seen last, in their order")
	require.Len(t, MostImportant(incidents[:2]), 2)
}

func TestDecodeVerdictWithIncidents(t *testing.T) {
	t.Parallel()
	verdict, err := DecodeVerdict([]byte(`{"status": "escalate", "summary": "s", "services_affected": ["web"], "kind": "Disk Full!",
		"issues": [{"summary": "s", "services": ["web"], "severity": "info", "kind": "TLS-certificate"}],
		"known_incidents": [{"id": "incident-1", "status": "worse", "note": "n"}, {"id": "incident-77", "status": "healed"}]}`))
	require.NoError(t, err)
	require.Equal(t, "disk_full", verdict.Kind)
	require.Equal(t, "tls_certificate", verdict.Issues[0].Kind)
	require.Equal(t, KnownIncident{ID: "incident-1", Status: IncidentWorse, Note: "n"}, verdict.Known[0])
	for raw, want := range map[string]string{
		`"known_incidents": [{"id": "", "status": "worse"}]`:            "known_incidents[0].id is empty",
		`"known_incidents": [{"id": "incident-1", "status": "better"}]`: `known_incidents[0].status is "better"`,
		`"kind": "a very long description of what kind of fault it is"`: "kind has more than 40 bytes",
	} {
		_, err := DecodeVerdict([]byte(`{"status": "healthy", "summary": "s", ` + raw + "}"))
		require.ErrorContains(t, err, want)
	}
}
