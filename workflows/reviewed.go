package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/review"
)

// inspects reports whether the session of a step is asked for what it commits.
func (c *chainRun) inspects(s step) bool {
	repairs := s.purpose == escalation.PurposeTier || s.purpose == escalation.PurposeContinuation
	return c.policy.Review.Reviews() && s.tier >= escalation.TierSafeRepair && repairs && !c.policy.DryRun
}

// mustReview reports whether the change of a session is reviewed now: when the chain has a result, and no further session
// follows that works on it.
func (c *chainRun) mustReview(session escalation.Session, change *activities.Change, decision escalation.Decision) bool {
	concluded := session.Status == escalation.SessionCompleted && session.Verdict != nil &&
		session.Verdict.Status != escalation.VerdictFailed
	ends := decision.Action == escalation.DecisionComplete || decision.Action == escalation.DecisionGate
	return change != nil && c.policy.Review.Reviews() && concluded && ends
}

// concludeReviewed does the same as conclude, after it has had the change of the session reviewed. The review informs
// people, and does not change the decision.
func (c *chainRun) concludeReviewed(
	ctx workflow.Context, session escalation.Session, change activities.Change, decision escalation.Decision,
) (escalation.Decision, error) {
	c.sessions.ended(ctx, session)
	reviewed, err := c.reviews.review(ctx, reviewRequest{
		loop: review.NewLoop(review.Limits{}), author: session, change: change, problem: c.problem(), request: c.input.Prompt,
	})
	c.incidents.send(ctx)
	if err != nil {
		return decision, c.abortIfCancelled(ctx, err)
	}
	if reviewed.stopped {
		decision = escalation.Cancelled()
	}
	return decision, c.settle(ctx, session, reviewed.unclosed, decision)
}

// problem returns what the chain works on, in the words of whoever found it: of its issue, or of its first look.
func (c *chainRun) problem() string {
	if c.input.Issue != "" {
		return c.input.Issue
	}
	for i := range c.log.chain.Sessions {
		look := &c.log.chain.Sessions[i]
		if look.Tier == escalation.TierObserve && look.Purpose == escalation.PurposeTier && look.Verdict != nil {
			return look.Verdict.Summary + "\n" + look.Verdict.Findings
		}
	}
	return ""
}
