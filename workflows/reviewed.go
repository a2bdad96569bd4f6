package workflows

import (
	"cmp"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/review"
)

// reviewed is what a chain has committed, and how far its review is. A step keeps it until the change is approved.
type reviewed struct {
	Loop   review.Loop       `json:"loop"`
	Change activities.Change `json:"change"`
	// Ran is the state of the loop in which the latest session ran.
	Ran review.State `json:"ran,omitempty"`
}

// inspects reports whether the session of a step is asked for what it commits.
func (c *chainRun) inspects(s step) bool {
	repairs := s.purpose == escalation.PurposeTier || s.purpose == escalation.PurposeContinuation
	return c.policy.Review.Reviews() && s.tier >= escalation.TierSafeRepair && repairs && !c.policy.DryRun
}

// mustReview reports whether the change of a session is reviewed now: when the chain has a result, and no further session
// follows that works on it. A correction counts also if nothing is left of what the chain has committed.
func (c *chainRun) mustReview(s step, session escalation.Session, change *activities.Change, decision escalation.Decision) bool {
	concluded := session.Status == escalation.SessionCompleted && session.Verdict != nil &&
		session.Verdict.Status != escalation.VerdictFailed
	ends := decision.Action == escalation.DecisionComplete || decision.Action == escalation.DecisionGate
	return (change != nil || s.reviewed != nil) && c.policy.Review.Reviews() && concluded && ends
}

// newLoop returns the loop for a change that no one has reviewed. An advisory review leads to no correction.
func (c *chainRun) newLoop() review.Loop {
	if c.policy.Review.Mode != escalation.ReviewRequired {
		return review.NewLoop(review.Limits{})
	}
	return review.NewLoop(review.Limits{Fixes: c.policy.Review.MaxFixes, Retries: c.policy.Review.MaxFixes})
}

// reviewChange has the change of a session reviewed that has just ended, and returns the step that follows. The argument
// decision is the decision on the session itself.
func (c *chainRun) reviewChange(
	ctx workflow.Context, s step, session escalation.Session, change *activities.Change, decision escalation.Decision,
) (step, error) {
	c.sessions.ended(ctx, session)
	request := reviewRequest{loop: c.newLoop(), author: session}
	if change != nil {
		request.change = *change
	}
	if s.reviewed != nil {
		request.loop = s.reviewed.Loop
	}
	return c.runReview(ctx, s, request, decision)
}

// reviewAgain has a change reviewed once more whose review did not take place.
func (c *chainRun) reviewAgain(ctx workflow.Context, s step) (step, error) {
	author := *c.log.chain.Worked()
	decision := escalation.Gated(*c.policy, escalation.Decide(*c.policy, author, escalation.DecisionInput{NoSplit: true}))
	request := reviewRequest{
		loop: s.reviewed.Loop, author: author, change: s.reviewed.Change, closed: true, continues: s.continues,
	}
	if s.request != nil {
		request.guidance = s.request.Guidance
	}
	return c.runReview(ctx, s, request, decision)
}

// runReview runs a review and returns the step that follows. An advisory review only informs people. After a required one,
// the change is pushed, corrected, or left to a person.
func (c *chainRun) runReview(
	ctx workflow.Context, s step, request reviewRequest, decision escalation.Decision,
) (step, error) {
	request.problem, request.request = c.problem(), c.input.Prompt
	result, err := c.reviews.review(ctx, request)
	c.incidents.send(ctx)
	if err != nil {
		return step{}, c.abortIfCancelled(ctx, err)
	}
	change := request.change
	if s.reviewed != nil {
		change = latestChange(&s.reviewed.Change, change, result.decision)
	}
	ran := request.loop.State
	switch {
	case result.reviewer != nil:
		ran = review.StateReview
	case ran.Role() != review.Author: // the reviewer was refused
		ran = s.reviewed.Ran
	}
	s.reviewed = nil
	about := proposal{tier: request.author.Tier, problem: request.problem}
	switch {
	case result.stopped:
		decision = escalation.Cancelled()
	case c.policy.Review.Mode != escalation.ReviewRequired:
		c.reviews.advise(ctx, request.change, about)
	default:
		if result.loop.State == review.StateApproved {
			result.loop, result.decision = c.reviews.push(ctx, result.loop, request.change, about)
		}
		s.reviewed = &reviewed{Loop: result.loop, Change: change, Ran: ran}
		if role := result.loop.State.Role(); role == review.Author {
			if result.unclosed != nil {
				c.sessions.closeWithNext(*result.unclosed)
			}
			return c.correct(s, request.author), nil
		}
		if result.loop.State == review.StateGate {
			decision = escalation.Gated(*c.policy, escalation.DecideReview(result.decision.Reason))
		}
	}
	if err := c.settle(ctx, request.author, result.unclosed, decision); err != nil {
		return step{}, err
	}
	return c.after(ctx, s, request.author, decision)
}

// correct returns the step in which the author continues its conversation to correct its change. If the conversation is full,
// a new session corrects it, as after a gate.
func (c *chainRun) correct(s step, author escalation.Session) step {
	s.action, s.continues, s.request, s.purpose = stepSession, &author, nil, escalation.PurposeTier
	if c.sessions.full(&author, c.policy.For(s.tier)) {
		s.continues = nil
	}
	s.corrects, s.chosen = true, false
	return s
}

// stopped describes the session before the gate of a step that reviews or corrects a change; nil for other steps. The
// argument last is the latest session.
func (s step) stopped(policy escalation.Policy, last *escalation.Session) *review.Stopped {
	if s.reviewed == nil {
		return nil
	}
	ran, resume := s.reviewed.Ran, s.reviewed.Loop.Resume
	if s.reviewed.Loop.State.Role() == review.Author { // a correction has ended, or was refused
		resume = s.reviewed.Loop.State
		if !s.refused {
			ran = resume
		}
	}
	stopped := review.StoppedAt(policy, ran, resume, last)
	return &stopped
}

// correction returns what the session of a step must correct; nil for its usual work. The conversation of an interrupted
// correction has the findings. It may lack what checks have printed since.
func (s step) correction() *activities.Correction {
	if s.reviewed == nil || !s.corrects || s.chosen && s.reviewed.Loop.State != review.StateQualityRetry {
		return nil
	}
	of := &activities.Correction{Commit: s.reviewed.Loop.Commit, Findings: s.reviewed.Loop.Open}
	if s.reviewed.Loop.State == review.StateQualityRetry || len(of.Findings) == 0 {
		of.Findings, of.CheckOutput = nil, s.reviewed.Change.CheckOutput
	}
	return of
}

// afterReviewGate returns the step that follows the gate of a change that was not approved. An override pushes the commit; if
// that fails, a person is asked again. A fix runs the author again in a new session, or the review if that did not take
// place. The author also repairs what keeps the checks from running.
func (c *chainRun) afterReviewGate(ctx workflow.Context, s step, gate *escalation.Gate) (step, error) {
	of := *s.reviewed
	if gate.Answer.Action == escalation.GateOverride && acceptable(of.Change) {
		of.Loop.Commit = of.Change.Commit
	}
	of.Loop, _ = of.Loop.AfterGate(gate.Answer.Action)
	if ending, ends := gate.Ending(*gate.Answer); ends {
		if gate.Answer.Actor != "" && of.Loop.Approves(of.Change.Commit) {
			var pushed review.Decision
			about := proposal{tier: s.tier, problem: c.problem()}
			if of.Loop, pushed = c.reviews.push(ctx, of.Loop, of.Change, about); of.Loop.State == review.StateGate {
				s.reviewed = &of
				return c.stop(ctx, s, escalation.Gated(*c.policy, escalation.DecideReview(pushed.Reason)))
			}
		}
		return step{}, c.record(ctx, ending)
	}
	if of.Loop.State == review.StateQuality {
		of.Loop.State = review.StateQualityRetry
	}
	next := c.stepFrom(s, gate)
	next.reviewed = &of
	if of.Loop.State == review.StateReview {
		next.action = stepReview
		return next, c.log.publish(ctx)
	}
	next.corrects = true
	return next, c.log.publish(ctx)
}

// push pushes an approved commit, and adds to the latest review where it was pushed. If the repository is at a forge, push also
// opens a pull request.
func (r *reviews) push(
	ctx workflow.Context, loop review.Loop, change activities.Change, about proposal,
) (review.Loop, review.Decision) {
	var tiers *activities.Tiers
	var pushed activities.PushResult
	pushing := withPush(ctx, "push "+change.Branch)
	err := workflow.ExecuteActivity(pushing, tiers.PushChange, activities.PushRequest{
		Directory: r.sessions.directory, Branch: change.Branch, Commit: loop.Commit, Base: change.Fork, Pack: change.Pack,
	}).Get(pushing, &pushed)
	if err != nil {
		pushed.Problem = cmp.Or(rootMessage(err), "no worker answered")
	}
	after, decision := loop.AfterPush(pushed.Problem)
	latest := &r.log.chain.Reviews[len(r.log.chain.Reviews)-1]
	event := escalation.Event{
		Kind: escalation.EventReview, Message: fmt.Sprintf("%s, to %s of %s", decision.Reason, change.Branch, pushed.Remote),
	}
	if pushed.Problem != "" {
		event.Severity, event.Message = escalation.SeverityWarning, decision.Reason
	} else {
		latest.Pushed = pushed.Remote
	}
	r.log.add(ctx, event)
	if pushed.Problem == "" {
		r.propose(ctx, change, about, !latest.Approved)
	}
	return after, decision
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
