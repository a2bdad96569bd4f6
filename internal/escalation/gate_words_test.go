package escalation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

var wordsNow = time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)

// usedUpGate returns a gate at which the restarts of a service are used up until 17:40.
func usedUpGate() escalation.Gate {
	limit := escalation.Limit{Max: 3, Window: escalation.Duration(4 * time.Hour)}
	return escalation.NewGate(gatePolicy(), escalation.GateInput{
		Number: 1, At: wordsNow, Tier: escalation.TierSafeRepair, Transcript: escalation.TranscriptReachable,
		Decision: escalation.Decision{Rule: escalation.RuleVerdict, Reason: "tier 2 asks for a person"},
		Last:     endedSession(2, escalation.SessionCompleted, escalation.VerdictNeedsHuman), SpentUSD: 0.0032,
		Sessions: []escalation.Session{
			*endedSession(1, escalation.SessionCompleted, escalation.VerdictEscalate),
			{Tier: 2, Report: escalation.Report{Verdict: &escalation.Verdict{
				Status: escalation.VerdictNeedsHuman, Summary: "it ends 40 s after each start:\n the disk of its cache is full",
			}}},
		},
		Tried: []string{"tier 2 (sonnet), $0.0032: needs a person, tried “restarted it”"},
		Incidents: []escalation.ChainIncident{
			{ID: "incident-1", Summary: "slow", Severity: escalation.SeverityWarning},
			{ID: "incident-2", Summary: "jellyfin answers 502.", Severity: escalation.SeverityCritical, Services: []string{"jellyfin"}, Since: wordsNow.Add(-14 * time.Hour)},
			{ID: "incident-3", Summary: "another chain's", Handler: "other"},
			{ID: "incident-4", Summary: "gone", Resolved: true},
		},
		Notes: escalation.GateNotes{
			DeniedCalls: []string{"rm -rf /var/cache: the policy grants no rm"}, Denied: 3,
			Cooldowns: []escalation.ServiceState{{
				Service: "jellyfin", Restarts: escalation.Use{Used: 3, Limit: limit, FreeAt: wordsNow.Add(220 * time.Minute)},
			}},
		},
	})
}

// TestGateFacts checks what a person reads at a gate. No value of the domain, ID of a conversation or time of a machine is
// among it.
func TestGateFacts(t *testing.T) {
	t.Parallel()
	gate := usedUpGate()
	var lines []string
	for _, fact := range gate.Facts(wordsNow) {
		for _, line := range fact.Lines {
			lines = append(lines, strings.TrimSpace(fact.Label+": "+line.Text+" "+line.IncidentID))
		}
	}
	require.Equal(t, []string{
		"Wrong: jellyfin answers 502, since 00:00 UTC incident-2", "Wrong: slow incident-1",
		"Found: it ends 40 s after each start: the disk of its cache is full", "Why: tier 2 asks for a person",
		"Tried: tier 2 (sonnet), $0.0032: needs a person, tried “restarted it”",
		"Denied: rm -rf /var/cache: the policy grants no rm", "Denied: and 2 more",
		"Left: 0 of 3 restarts of jellyfin in 4 h, the next at 17:40 UTC", "Cost: $0.0032 so far",
		"Open: since 14:00 UTC; if nobody answers until Mar 4, 14:00 UTC: abort",
	}, lines)
	require.Equal(t, escalation.SeverityCritical, gate.Severity())
	require.Equal(t, "it ends 40 s after each start: the disk of its cache is full", gate.Headline())
	for _, option := range gate.Options {
		lines = append(lines, gate.Meaning(option, wordsNow))
	}
	require.NotRegexp(t, `_|the-session|\dT\d|\d{3}h|\$0\.00\b`, strings.Join(lines, "\n"))
}

// TestGateMeanings checks what each answer is said to do, and when.
func TestGateMeanings(t *testing.T) {
	t.Parallel()
	meanings := func(gate escalation.Gate) (said []string) {
		for _, option := range gate.Options {
			said = append(said, gate.Meaning(option, wordsNow))
		}
		return said
	}
	const later = "; restarts are used up: goes on at 17:40 UTC, or now anyway"
	const look = "I fixed it, look again: tier 1 looks, and the chain ends as resolved if all is well"
	const override = "override: the state is accepted, and the chain ends; the incident stays open, and looks leave it"
	const abort = "abort: the chain ends; the incident stays open, and a look may repair it"
	gate := usedUpGate()
	require.Equal(t, []string{
		"continue: tier 2 goes on and keeps what it knows" + later, "fix: tier 2 starts fresh" + later, look, override, abort,
	}, meanings(gate))
	gate.Rule = escalation.RuleCooldown // the answer passes it
	require.Equal(t, "fix: tier 2 starts fresh", meanings(gate)[1])
	gate = usedUpGate()
	gate.Cooldowns[0].Restarts.FreeAt = wordsNow
	require.Equal(t, "fix: tier 2 starts fresh", meanings(gate)[1], "one is free by now")
	gate.Cooldowns[0].Restarts.FreeAt = time.Time{}
	require.Equal(t, "fix: tier 2 starts fresh; its restarts are used up: only now anyway", meanings(gate)[1])
	gate = usedUpGate()
	gate.Answer = &escalation.GateClosing{Action: escalation.GateFix, Actor: "ada", Force: true}
	require.Contains(t, gate.Allows(), escalation.RuleCooldown)
	require.Equal(t, "tier 2 starts fresh, also if its restarts are used up", gate.Next(*gate.Answer))
}

// TestGateOfTheHighestTier checks that fix does not repeat the tier that has asked for a higher one.
func TestGateOfTheHighestTier(t *testing.T) {
	t.Parallel()
	asks := endedSession(1, escalation.SessionCompleted, escalation.VerdictEscalate)
	for highest, want := range map[escalation.Tier]escalation.Tier{1: 2, 2: 2} {
		asks.Verdict.RecommendedTier = highest + 1
		policy := gatePolicy()
		policy.MaxTier, policy.Gate.OnTimeout = highest, escalation.GateFix
		decision := escalation.Gated(policy, escalation.Decide(policy, *asks, escalation.DecisionInput{}))
		require.Equal(t, escalation.RuleMaxTier, decision.Rule)
		require.Equal(t, want, decision.Tier)
		gate := escalation.NewGate(policy, escalation.GateInput{Number: 1, Tier: decision.Tier, Refused: true, Last: asks, Decision: decision})
		meaning := gate.Meaning(escalation.GateFix, wordsNow)
		if highest == 1 {
			require.Equal(t, escalation.TierObserve, gate.MaxTier)
			require.Equal(t, escalation.GateAbort, gate.OnTimeout, "nobody has raised the limit")
			require.Contains(t, meaning, "fix: tier 2 repairs it: your answer raises the limit of this chain, tier 1; the workers' CLAUDEOPS_MAX_TIER must allow it")
			continue
		}
		require.Zero(t, gate.MaxTier)
		require.Equal(t, "fix: tier 2 starts fresh", meaning)
	}
}

// TestHigherIsOfferedWhereItIsPossible checks when a person can ask for a higher tier.
func TestHigherIsOfferedWhereItIsPossible(t *testing.T) {
	t.Parallel()
	for want, change := range map[escalation.Tier]func(*escalation.Policy, *escalation.GateInput){
		3: func(*escalation.Policy, *escalation.GateInput) {},
		0: func(p *escalation.Policy, _ *escalation.GateInput) { p.MaxTier = 2 },
	} {
		policy, opening := gatePolicy(), escalation.GateInput{Tier: 2}
		change(&policy, &opening)
		require.Equal(t, want, escalation.NewGate(policy, opening).Higher)
	}
	restricted := gatePolicy()
	restricted.Gate.FourEyes = true
	require.Zero(t, escalation.NewGate(restricted, escalation.GateInput{Tier: 2}).Higher)
}

// TestCallSubject checks which field of a call's input says what the call is about.
func TestCallSubject(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"command":"df -h","description":"disk"}`: "df -h", `{"file_path":"/etc/hosts"}`: "/etc/hosts",
		`{"status":"resolved","summary":"it answers"}`: "it answers", `{"other":1}`: `{"other":1}`, "cut {": "cut {",
	} {
		require.Equal(t, want, escalation.CallSubject(input))
	}
}

// TestAnswersAtThePhaseOfAPlan checks that no answer at the gate of a plan speaks of tiers and incidents.
func TestAnswersAtThePhaseOfAPlan(t *testing.T) {
	t.Parallel()
	gate := escalation.Gate{Tier: escalation.TierSafeRepair, Phase: "2", Role: "author", Resume: "auto_fix"}
	var answers []string
	for _, action := range []escalation.GateAction{escalation.GateContinue, escalation.GateFix, escalation.GateOverride, escalation.GateAbort} {
		answers = append(answers, gate.Meaning(action, wordsNow))
	}
	require.Equal(t, []string{
		"continue: the author goes on and keeps what it knows", "fix: the author starts fresh",
		"override: phase 2 is passed over without a commit, and the work on the plan goes on", "abort: the chain ends",
	}, answers)
	for resume, want := range map[string]string{"quality": "fix: the checks run again", "approved": "fix: what is approved is pushed again"} {
		repeats := escalation.Gate{Phase: "2", Resume: resume}
		require.Equal(t, want, repeats.Meaning(escalation.GateFix, wordsNow))
	}
	reviewed := escalation.Gate{Phase: "2", Role: "reviewer", Resume: "review"}
	require.Equal(t, "fix: the reviewer starts fresh", reviewed.Meaning(escalation.GateFix, wordsNow))
}

// TestInWords checks that no value of the domain is shown in the form of machines.
func TestInWords(t *testing.T) {
	t.Parallel()
	var words []string
	for _, outcome := range escalation.Outcomes() {
		words = append(words, escalation.InWords(outcome))
	}
	for _, ending := range escalation.Endings() {
		words = append(words, escalation.InWords(ending))
	}
	require.NotContains(t, strings.Join(words, " "), "_")
	require.Contains(t, words, "needs a person")
	require.Equal(t, "continue", escalation.InWords(escalation.GateContinue))
	require.Equal(t, "parent session", escalation.InWords(escalation.ReasonParentSession), "others lose their _")
}
