package escalation

import (
	"fmt"
	"slices"
)

// FirstTier is the tier that begins with the repair of an issue which observer found: the one that
// is asked for, and at least the one above.
func (i Issue) FirstTier(observer Tier) Tier { return max(i.RecommendedTier, observer+1) }

// DecideBlockedIssue ends an issue whose repair begins with first, which is higher than policy allows.
func DecideBlockedIssue(policy Policy, first Tier) Decision {
	return complete(OutcomeNeedsHuman, RuleMaxTier, fmt.Sprintf("it asks for %s, and %s is the highest allowed", first, policy.MaxTier))
}

// concerns orders outcomes by how much they concern a person, least first.
var concerns = []Outcome{
	OutcomeHealthy, OutcomeResolved, OutcomeSuppressed, OutcomeOverridden, OutcomeAborted, OutcomeNeedsHuman, OutcomeFailed,
}

// DecideIssues ends a chain that has split into these as the worst of them ended.
func DecideIssues(issues []IssueChain) Decision {
	for _, worst := range slices.Backward(concerns) {
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
