package escalation

import (
	"cmp"
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
		RuleIssues: CareIgnored, RuleCooldown: CareNone, RuleServiceBusy: CareNone, RuleEscalationLimit: CareNone,
		RuleDayBudget: CareNone, RuleAccountLimit: CareNone, RuleProviderAway: CareNone,
	}},
	OutcomeFailed: {CareAsked, map[Rule]Care{
		"": CareNone, RuleIssues: CareIgnored, RuleCooldown: CareNone, RuleServiceBusy: CareNone,
		RuleEscalationLimit: CareNone, RuleDayBudget: CareNone, RuleAccountLimit: CareNone, RuleProviderAway: CareNone,
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
// chain takes care of the incident, Handler returns false. A chain that works comes before the chain that ended last;
// of several that work, the one that is ahead of the others counts. A chain that has ended stops taking care when the
// incident becomes worse or comes back.
func (i *Incident) Handler(except ChainRun, at time.Time) (IncidentChain, bool) {
	var others []IncidentChain
	for _, chain := range i.Chains {
		if chain.ChainID != except.ChainID || chain.FirstRunID != except.FirstRunID {
			others = append(others, chain)
		}
	}
	var working IncidentChain
	for _, chain := range others {
		if chain.care(i.Kind, at) == CareWorks && (working.ChainID == "" || chain.aheadOf(working)) {
			working = chain
		}
	}
	if working.ChainID != "" {
		return working, true
	}
	latest, care := i.ended(others, at)
	return latest, care != CareNone && i.unchangedSince(latest)
}

// unchangedSince reports whether the incident has neither become worse nor come back since the given chain ended.
func (i *Incident) unchangedSince(ended IncidentChain) bool {
	return !i.WorseAt.After(ended.At) && !ended.At.Before(i.ReturnedAt)
}

// maxRunsListed limits the runs of one workflow ID that an incident lists because they have a say. A chain that looks
// leaves out its own run.
const maxRunsListed = 2

// maxSaysListed limits the workflow IDs that an incident lists because they have a say. A chain that looks leaves out
// its own, and that of its parent.
const maxSaysListed = 3

// Shorten limits the list of the incident's chains. It keeps each chain on which a decision can depend: those that
// repair, those that have a say, and the highest tier that was tried. So all decisions are the same as with the whole
// list, whichever chain asks. Of the rest, it keeps the latest ones, and prefers those that have tried something.
func (i *Incident) Shorten() {
	keep := make([]bool, len(i.Chains))
	var active, ended []int
	for n := range i.Chains {
		if i.Chains[n].Status == ChainEnded {
			ended = append(ended, n)
		} else {
			active = append(active, n)
		}
	}
	// A chain that waits and is not listed is behind all that are.
	slices.SortStableFunc(active, func(a, b int) int { return i.Chains[a].compareActive(&i.Chains[b]) })
	others := 0
	for _, n := range active {
		if i.Chains[n].Status != ChainRepairing {
			others++
		}
		keep[n] = others <= MaxActiveChains || i.Chains[n].Status == ChainRepairing
	}
	slices.SortStableFunc(ended, func(a, b int) int {
		return cmp.Or(i.Chains[b].At.Compare(i.Chains[a].At), cmp.Compare(b, a))
	})
	i.keepSays(ended, keep)
	i.keepHighest(keep)
	i.keepLatest(ended, keep)
	var listed []IncidentChain
	for n, chain := range i.Chains {
		if keep[n] {
			listed = append(listed, chain)
		}
	}
	i.Chains = listed
}

// keepLatest keeps the latest of the chains that have ended, up to MaxIncidentChains with those that are kept already.
// It prefers those that have tried something. The argument ended lists the latest one first.
func (i *Incident) keepLatest(ended []int, keep []bool) {
	kept := 0
	for _, n := range ended {
		if keep[n] {
			kept++
		}
	}
	for _, tried := range []bool{true, false} {
		for _, n := range ended {
			if !keep[n] && kept < MaxIncidentChains && (i.Chains[n].Tier > 0) == tried {
				keep[n], kept = true, kept+1
			}
		}
	}
}

// compareActive orders chains that have not ended: those that repair, then those that wait, then those that look; of
// each, the one that is ahead first.
func (c *IncidentChain) compareActive(other *IncidentChain) int {
	order := []ChainStatus{ChainRepairing, ChainWaiting, ChainLooking}
	byStatus := cmp.Compare(slices.Index(order, c.Status), slices.Index(order, other.Status))
	switch {
	case byStatus != 0:
		return byStatus
	case c.aheadOf(*other):
		return -1
	case other.aheadOf(*c):
		return 1
	}
	return 0
}

// keepSays keeps, of the ended chains, those that can decide who takes care of the incident. The argument ended holds
// their indexes, latest first.
func (i *Incident) keepSays(ended []int, keep []bool) {
	runs := map[string]int{}
	var asked [TierFullRepair + 1]bool // the latest chain for each highest tier that asked for a person
	for _, n := range ended {
		chain := &i.Chains[n]
		if chain.ChainID == i.ResolvedBy {
			keep[n] = true
		}
		if chain.asked() && !asked[min(max(chain.MaxTier, 0), TierFullRepair)] {
			asked[min(max(chain.MaxTier, 0), TierFullRepair)], keep[n] = true, true
		}
		if chain.care(i.Kind, chain.At) == CareIgnored {
			continue
		}
		known := runs[chain.ChainID]
		if known < maxRunsListed && (known > 0 || len(runs) < maxSaysListed) {
			runs[chain.ChainID], keep[n] = known+1, true
		}
	}
}

// keepHighest keeps the latest chain of the highest tier that has tried to repair the incident.
func (i *Incident) keepHighest(keep []bool) {
	highest := i.HighestTier()
	for n := len(i.Chains) - 1; n >= 0 && highest > 0; n-- {
		if i.Chains[n].Tier == highest {
			keep[n] = true
			return
		}
	}
}
