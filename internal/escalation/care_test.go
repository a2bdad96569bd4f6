package escalation

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCareAfterTheEnd checks every outcome with every rule. The table of the test lists the combinations in which
// someone takes care, or in which the chain has no say. After any other end, the next look repairs the fault.
func TestCareAfterTheEnd(t *testing.T) {
	t.Parallel()
	rules := []Rule{
		"", RuleVerdict, RuleNoVerdict, RuleResumeFailed, RuleTranscriptLost, RuleDryRun, RuleMaxTier, RuleOperator, RuleCancelled, RuleIssues,
		RuleAdmitted, RuleChainBudget, RuleDayBudget, RuleCooldown, RuleServiceBusy, RuleEscalationLimit, RuleHandoffInvalid, RuleGateExpired,
		RuleKnown, RuleReturned, RuleHealed,
	}
	limits := []Rule{RuleDayBudget, RuleCooldown, RuleServiceBusy, RuleEscalationLimit}
	want := func(outcome Outcome, rule Rule) Care {
		switch outcome {
		case OutcomeKnown, OutcomeSuppressed, OutcomeApproved:
			return CareIgnored
		case OutcomeHealthy, OutcomeResolved:
			return CareNone
		case OutcomeOverridden, OutcomeAborted, OutcomeNeedsHuman, OutcomeFailed:
		}
		switch {
		case rule == RuleIssues:
			return CareIgnored // the chains of the issues tell
		case outcome == OutcomeOverridden:
			return CareAccepted
		case outcome == OutcomeAborted && rule == RuleGateExpired:
			return CareAsked
		case outcome == OutcomeAborted || slices.Contains(limits, rule) || outcome == OutcomeFailed && rule == "":
			return CareNone
		}
		return CareAsked
	}
	for _, outcome := range Outcomes() {
		require.Contains(t, careAfter, outcome)
		for _, rule := range rules {
			chain := worked("chain", ChainEnded, outcome)
			chain.Rule = rule
			for _, later := range []time.Duration{0, 100 * 24 * time.Hour} {
				require.Equal(t, want(outcome, rule), chain.care("down", chain.At.Add(later)), "%s by %s", outcome, rule)
			}
			if care := chain.care(KindLookFailed, chain.At.Add(askedAboutLooks)); want(outcome, rule) == CareAsked {
				require.Equal(t, CareNone, care, "people are asked again about looks: %s by %s", outcome, rule)
			}
			for _, status := range []ChainStatus{ChainLooking, ChainRepairing, ChainWaiting, ChainEnded} {
				dry := chain
				dry.Status, dry.DryRun = status, true
				require.Equal(t, CareIgnored, dry.care("down", chain.At), "a dry run repairs nothing: %s, %s by %s", status, outcome, rule)
			}
		}
	}
	require.Len(t, careAfter, len(Outcomes()))
}

// TestCareBeforeTheEnd checks the chains that have not ended.
func TestCareBeforeTheEnd(t *testing.T) {
	t.Parallel()
	looks, repairs, waits := worked("c", ChainLooking, ""), worked("c", ChainRepairing, ""), worked("c", ChainWaiting, "")
	until := waits
	until.Until = incidentNoon
	require.Equal(t, CareIgnored, looks.care("", incidentNoon))
	for _, later := range []time.Duration{0, 1000 * time.Hour} {
		require.Equal(t, CareWorks, repairs.care("", incidentNoon.Add(later)))
		require.Equal(t, CareWorks, waits.care("", incidentNoon.Add(later)))
	}
	require.Equal(t, CareWorks, until.care("", incidentNoon.Add(lateEnd-1)))
	require.Equal(t, CareIgnored, until.care("", incidentNoon.Add(lateEnd)))
}

// TestLatestChainIsTheOneThatEndedLast checks that an override on Wednesday counts for more than an abort on Tuesday,
// even if the aborted chain met the incident later.
func TestLatestChainIsTheOneThatEndedLast(t *testing.T) {
	t.Parallel()
	accepted, aborted := worked("monday", ChainEnded, OutcomeOverridden), worked("tuesday", ChainEnded, OutcomeAborted)
	aborted.At = accepted.At.Add(-24 * time.Hour)
	incident := Incident{Chains: []IncidentChain{accepted, aborted}}
	handler, handled := incident.Handler(ChainRun{}, incidentNoon)
	require.True(t, handled)
	require.Equal(t, "monday", handler.ChainID)
}

// TestDryRunHandsNothingOn checks that the end of a dry run does not make its fault known to later looks.
func TestDryRunHandsNothingOn(t *testing.T) {
	t.Parallel()
	policy := Policy{Tiers: make([]TierPolicy, 3), MaxTier: TierFullRepair, DryRun: true, Gate: GatePolicy{Timeout: Duration(time.Hour)}}
	for _, status := range []VerdictStatus{VerdictNeedsHuman, VerdictFailed, VerdictEscalate} {
		session := looked(Verdict{Status: status, Services: []string{"web"}})
		decision := Gated(policy, Decide(policy, session, DecisionInput{}))
		dry := IncidentChain{ChainID: "dry", ChainProgress: ProgressOf(policy, decision, incidentNoon)}
		incident := Incident{ID: "incident-1", Services: []string{"web"}, Chains: []IncidentChain{dry}}
		recognition := Recognize(session, []Incident{incident}, Look{ChainRun: ChainRun{ChainID: "own"}}, incidentNoon.Add(time.Hour))
		require.Empty(t, recognition.Known, status)
		require.Equal(t, IncidentOpen, incident.StateOf(), status)
	}
}
