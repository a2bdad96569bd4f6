package escalation

import (
	"slices"
	"time"
)

// Care says whether a chain takes care of an incident. Looks that find the fault again leave it to such a chain.
type Care string

// The kinds of care.
const (
	CareNone     Care = ""         // nobody takes care: the chain has ended, and the fault is open to the next look
	CareIgnored  Care = "ignored"  // the chain has no say, so the chain that ended before it counts
	CareWorks    Care = "works"    // the chain repairs, or waits before it repairs
	CareAsked    Care = "asked"    // the chain has ended because a person must act, and nobody has acted
	CareAccepted Care = "accepted" // the chain has ended because a person accepted the state
)

const (
	// lateEnd is how long a chain still counts as waiting after the end of its wait. If no worker runs at the end of
	// the wait, the chain continues later.
	lateEnd = time.Hour
	// askedAboutLooks is how long a chain takes care of a failed look after the chain has ended because a person must
	// act. Nobody sees the services until looks have results again, so people are asked again after that time.
	askedAboutLooks = 24 * time.Hour
)

// careAfter is the table of the care after the end of a chain. An outcome has one kind of care, except for the rules in
// its second column. A rule that is a temporary limit leaves the fault to the next look. RuleIssues is the end of a
// chain that was split: the chains of its issues record who takes care. A chain that broke off has no rule.
var careAfter = map[Outcome]struct {
	usual  Care
	except map[Rule]Care
}{
	OutcomeHealthy:    {CareNone, nil},
	OutcomeResolved:   {CareNone, nil},
	OutcomeApproved:   {CareIgnored, nil},
	OutcomeKnown:      {CareIgnored, nil},
	OutcomeSuppressed: {CareIgnored, nil},
	OutcomeOverridden: {CareAccepted, map[Rule]Care{RuleIssues: CareIgnored}},
	OutcomeAborted:    {CareNone, map[Rule]Care{RuleIssues: CareIgnored, RuleGateExpired: CareAsked}},
	OutcomeNeedsHuman: {CareAsked, map[Rule]Care{
		RuleIssues: CareIgnored, RuleCooldown: CareNone, RuleServiceBusy: CareNone, RuleEscalationLimit: CareNone, RuleDayBudget: CareNone,
		RuleAccountLimit: CareNone,
	}},
	OutcomeFailed: {CareAsked, map[Rule]Care{
		"": CareNone, RuleIssues: CareIgnored, RuleCooldown: CareNone, RuleServiceBusy: CareNone, RuleEscalationLimit: CareNone,
		RuleDayBudget: CareNone, RuleAccountLimit: CareNone,
	}},
}

// care returns the care of the chain for an incident of the given kind at a time. A dry run repairs nothing, so it
// never takes care.
func (c *IncidentChain) care(kind string, at time.Time) Care {
	switch {
	case c.DryRun:
		return CareIgnored
	case c.Status == ChainRepairing:
		return CareWorks
	case c.Status == ChainWaiting && (c.Until.IsZero() || at.Before(c.Until.Add(lateEnd))):
		return CareWorks
	case c.Status != ChainEnded:
		return CareIgnored
	}
	after := careAfter[c.Outcome]
	care, excepted := after.except[c.Rule]
	if !excepted {
		care = after.usual
	}
	if care == CareAsked && kind == KindLookFailed && !at.Before(c.At.Add(askedAboutLooks)) {
		return CareNone
	}
	return care
}

// asked reports whether the chain has ended because a person must act.
func (c *IncidentChain) asked() bool { return c.care("", c.At) == CareAsked }

// ended returns the chain that ended last and has a say, with its care; CareNone if there is none.
func (i *Incident) ended(chains []IncidentChain, at time.Time) (latest IncidentChain, care Care) {
	for _, chain := range chains {
		says := chain.care(i.Kind, at)
		if chain.Status != ChainEnded || says == CareIgnored || latest.ChainID != "" && chain.At.Before(latest.At) {
			continue
		}
		latest, care = chain, says
	}
	return latest, care
}

// Handler returns the chain that takes care of the incident at a given time, other than the chain in except. If no such
// chain takes care of the incident, Handler returns false. A chain that works comes before the chain that ended last. A
// chain that has ended stops taking care when the incident becomes worse or comes back.
func (i *Incident) Handler(except ChainRun, at time.Time) (IncidentChain, bool) {
	var others []IncidentChain
	for _, chain := range i.Chains {
		if chain.ChainID != except.ChainID || chain.FirstRunID != except.FirstRunID {
			others = append(others, chain)
		}
	}
	for _, chain := range slices.Backward(others) {
		if chain.care(i.Kind, at) == CareWorks {
			return chain, true
		}
	}
	latest, care := i.ended(others, at)
	return latest, care != CareNone && i.unchangedSince(latest)
}

// unchangedSince reports whether the incident has neither become worse nor come back since the given chain ended.
func (i *Incident) unchangedSince(ended IncidentChain) bool {
	return !i.WorseAt.After(ended.At) && !ended.At.Before(i.ReturnedAt)
}
