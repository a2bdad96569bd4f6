package escalation

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// FirstTier returns the tier that begins the repair of an issue. This is the recommended tier, but at least the tier
// above observer. The observer is the tier that found the issue.
func (i Issue) FirstTier(observer Tier) Tier { return max(i.RecommendedTier, observer+1) }

// severities orders the severities, worst first.
var severities = []Severity{SeverityCritical, SeverityWarning, SeverityInfo}

// MoreSevere reports whether the severity a is worse than b.
func MoreSevere(a, b Severity) bool { return CompareSeverity(a, b) < 0 }

// CompareSeverity compares severities for sorting, the worst first.
func CompareSeverity(a, b Severity) int {
	return cmp.Compare(slices.Index(severities, a), slices.Index(severities, b))
}

// MostSevereFirst returns the indexes of issues, the most severe issue first. Issues of equal severity keep their
// order.
func MostSevereFirst(issues []Issue) []int {
	indexes := make([]int, len(issues))
	for i := range indexes {
		indexes[i] = i
	}
	slices.SortStableFunc(indexes, func(a, b int) int {
		return CompareSeverity(issues[a].Severity, issues[b].Severity)
	})
	return indexes
}

// DecideBlockedIssue returns the decision that ends an issue whose first tier exceeds policy.MaxTier.
func DecideBlockedIssue(policy Policy, first Tier) Decision {
	return complete(OutcomeNeedsHuman, RuleMaxTier, fmt.Sprintf("it asks for %s, and %s is the highest allowed", first,
		policy.MaxTier))
}

// DecidePoorIssue returns the decision that ends an issue whose share of the chain's budget is too small for a session
// of its first tier; nil if it suffices, or if the chain has no budget. A share of 0 would be no limit.
func DecidePoorIssue(policy Policy, first Tier, share float64) *Decision {
	if policy.ChainBudgetUSD == 0 || share >= leastUSD(policy.ChainBudgetUSD, policy.For(first).BudgetUSD) {
		return nil
	}
	decision := complete(OutcomeNeedsHuman, RuleChainBudget, fmt.Sprintf(
		"%s cannot start: of the chain's budget of %s, %s is left for this issue", first,
		plaintext.Dollars(policy.ChainBudgetUSD), plaintext.Dollars(max(0, share))))
	return &decision
}

// outcomesByUrgency orders outcomes by urgency for an operator, least urgent first.
var outcomesByUrgency = []Outcome{
	OutcomeHealthy, OutcomeResolved, OutcomeApproved, OutcomeKnown, OutcomeSuppressed, OutcomeOverridden,
	OutcomeAborted, OutcomeNeedsHuman, OutcomeFailed,
}

// DecideIssues returns the decision that ends a split chain with the worst outcome of its issues.
func DecideIssues(issues []IssueChain) Decision {
	for _, worst := range slices.Backward(outcomesByUrgency) {
		count := 0
		for _, issue := range issues {
			if issue.Outcome == worst {
				count++
			}
		}
		if count > 0 {
			return complete(worst, RuleIssues, fmt.Sprintf("%d of %d issues ended %s", count, len(issues), worst))
		}
	}
	return complete(OutcomeFailed, RuleIssues, "no issue has ended")
}
