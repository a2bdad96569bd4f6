package escalation

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawnWork returns the random work of a chain on an incident. There are few IDs and times, so that they often
// coincide.
func drawnWork(t *rapid.T, n int) IncidentChain {
	label := func(what string) string { return fmt.Sprintf("%s of chain %d", what, n) }
	hour := func(what string) time.Time {
		return incidentNoon.Add(-time.Duration(rapid.IntRange(0, 40).Draw(t, label(what))) * time.Hour)
	}
	chain := IncidentChain{
		ChainID:    fmt.Sprintf("chain-%d", rapid.IntRange(1, 5).Draw(t, label("id"))),
		FirstRunID: fmt.Sprintf("run-%d", rapid.IntRange(1, 3).Draw(t, label("run"))),
		Tier:       Tier(rapid.SampledFrom([]int{0, 0, 0, 0, 2, 2, 3}).Draw(t, label("tier"))),
		Since:      hour("since"),
	}
	chain.At, chain.MaxTier = hour("time"), Tier(rapid.IntRange(0, 3).Draw(t, label("highest tier")))
	if rapid.Bool().Draw(t, label("chaff")) { // a later dry run, which has no say
		chain.ChainID, chain.DryRun, chain.Status, chain.Outcome = fmt.Sprintf("chaff-%d", n), true, ChainEnded, OutcomeSuppressed
		chain.At, chain.Tier = incidentNoon.Add(time.Minute), TierSafeRepair
		return chain
	}
	chain.DryRun = rapid.SampledFrom([]bool{false, false, false, true}).Draw(t, label("dry run"))
	statuses := []ChainStatus{ChainEnded, ChainEnded, ChainEnded, ChainWaiting, ChainLooking, ChainRepairing}
	chain.Status = rapid.SampledFrom(statuses).Draw(t, label("status"))
	if chain.Status == ChainEnded {
		chain.Outcome = rapid.SampledFrom(outcomesByUrgency).Draw(t, label("outcome"))
		chain.Rule = rapid.SampledFrom([]Rule{"", RuleIssues, RuleCooldown, RuleGateExpired, RuleVerdict, RuleDryRun}).Draw(t, label("rule"))
	}
	return chain
}

// TestShortListDecidesAlike compares each decision that depends on the chains of an incident: with the whole list, and
// with the short one. It would fail if the list had only its latest chains.
func TestShortListDecidesAlike(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		whole := Incident{ID: "incident-1", Services: []string{"web"}}
		for n := range rapid.IntRange(0, 70).Draw(t, "chains") {
			whole.Chains = append(whole.Chains, drawnWork(t, n))
		}
		slices.SortStableFunc(whole.Chains, func(a, b IncidentChain) int { return a.Since.Compare(b.Since) })
		for _, changed := range []*time.Time{&whole.WorseAt, &whole.ReturnedAt} {
			if rapid.Bool().Draw(t, "changed") {
				*changed = incidentNoon.Add(-time.Duration(rapid.IntRange(0, 40).Draw(t, "changed at")) * time.Hour)
			}
		}
		whole.Kind = rapid.SampledFrom([]string{"down", KindLookFailed}).Draw(t, "kind")
		short := whole
		short.Shorten()
		require.Subset(t, whole.Chains, short.Chains)
		requireShort(t, short.Chains)

		require.Equal(t, whole.StateOf(), short.StateOf())
		require.Equal(t, whole.HighestTier(), short.HighestTier())
		look := Look{MaxTier: Tier(rapid.IntRange(1, 3).Draw(t, "highest tier of the look")), Manual: rapid.Bool().Draw(t, "manual")}
		look.ChainID = fmt.Sprintf("chain-%d", rapid.IntRange(1, 6).Draw(t, "looks"))
		look.FirstRunID = fmt.Sprintf("run-%d", rapid.IntRange(1, 3).Draw(t, "its run"))
		if rapid.Bool().Draw(t, "has a parent") {
			look.ParentID = fmt.Sprintf("chain-%d", rapid.IntRange(1, 6).Draw(t, "parent"))
		}
		require.Equal(t, whole.mayTry(look.MaxTier), short.mayTry(look.MaxTier))
		for _, at := range []time.Time{incidentNoon, incidentNoon.Add(30 * time.Hour)} {
			handler, handled := look.handler(whole, at)
			shortHandler, shortHandled := look.handler(short, at)
			require.Equal(t, handled, shortHandled)
			if handled && handler.Status == ChainEnded {
				require.Equal(t, handler, shortHandler)
			}
			sighting := Sighting{Incident: &whole, News: IncidentUnchanged}
			_, known := look.knows(sighting, at)
			sighting.Incident = &short
			_, shortKnown := look.knows(sighting, at)
			require.Equal(t, known, shortKnown)
		}
	})
}

// requireShort checks that the length of a list does not depend on the number of chains, except for those that repair.
func requireShort(t *rapid.T, chains []IncidentChain) {
	active, ended := 0, 0
	for _, chain := range chains {
		switch chain.Status {
		case ChainEnded:
			ended++
		case ChainWaiting, ChainLooking:
			active++
		case ChainRepairing:
		}
	}
	require.LessOrEqual(t, active, MaxActiveChains)
	require.LessOrEqual(t, ended, MaxIncidentChains+maxSaysListed*maxRunsListed)
}

// TestManyDryRunsHideNobody checks the two decisions that many later chains must not change: who was asked, and which
// tier was tried.
func TestManyDryRunsHideNobody(t *testing.T) {
	t.Parallel()
	asked := worked("asked", ChainEnded, OutcomeNeedsHuman)
	asked.Tier, asked.Did = TierFullRepair, "redeployed it"
	incident := Incident{ID: "incident-1", Services: []string{"web"}, Chains: []IncidentChain{asked}}
	for n := range 50 {
		dry := worked(fmt.Sprintf("dry-%d", n), ChainEnded, OutcomeSuppressed)
		dry.DryRun, dry.At = true, asked.At.Add(time.Duration(n+1)*time.Minute)
		incident.Chains = append(incident.Chains, dry)
	}
	incident.Shorten()
	require.LessOrEqual(t, len(incident.Chains), MaxIncidentChains+1)
	handler, handled := incident.Handler(ChainRun{ChainID: "own"}, incidentNoon)
	require.True(t, handled)
	require.Equal(t, "asked", handler.ChainID)
	require.Equal(t, IncidentWaiting, incident.StateOf())
	require.Equal(t, TierFullRepair, incident.HighestTier())
	require.Len(t, incident.History(10), 1)

	policy := Policy{MaxTier: TierFullRepair, Returns: Limit{Max: 1, Window: Duration(time.Hour)}}
	require.Equal(t, OutcomeNeedsHuman, DecideReturned(policy, incident, TierSafeRepair, incidentNoon).Outcome, "tier 3 was tried")
}
