package chain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/workflows/parts"
)

// proposedChange is the change of a chain from its first commit to its push, with the state of its review. It lasts
// over corrections, escalations, waits and gates. Three things end it: the push, a person who was told what is dropped,
// and a change that contains it.
type proposedChange struct {
	Loop review.Loop `json:"loop"`
	// Change is the latest change. It has no commit while everything that was committed is pushed.
	Change activities.Change `json:"change"`
	// Unseen holds the worktrees of which nobody knows what was committed there.
	Unseen []unseenWork `json:"unseen,omitempty"`
	// Author is the latest session that has worked on it.
	Author escalation.Session `json:"author"`
	// Ran is the state of the loop in which the latest session ran, and Why the latest decision of the loop.
	Ran review.State `json:"ran,omitempty"`
	Why string       `json:"why,omitempty"`
	// Ending is the decision that ends the chain once the change is pushed, because a person has accepted it or nothing
	// else is left to do; nil if that is for its author's latest session. It stands until an author works on the change
	// again.
	Ending *escalation.Decision `json:"ending,omitempty"`
	// Pushed is the commit that was pushed last; zero if none was. The next change is based on it.
	Pushed activities.Checkpoint `json:"pushed,omitzero"`
}

// unseenWork is a worktree of which nobody knows what was committed there. That ends with a session that works in it,
// and with the first one after a gate that has said it to a person.
type unseenWork struct {
	// Why says why in a sentence. Host is the host of the worktree; empty if that is not known.
	Why  string `json:"why"`
	Host string `json:"host,omitempty"`
	// Told reports that a person has answered at a gate that has said it.
	Told bool `json:"told,omitempty"`
}

// unseen says why nobody knows all that was committed; empty if it is known.
func (p *proposedChange) unseen() string {
	var why []string
	for _, work := range p.Unseen {
		why = append(why, work.Why)
	}
	return strings.Join(why, "; ")
}

// see updates what nobody has seen after a session, with its change; nil if it has left none.
func (p *proposedChange) see(session escalation.Session, change *activities.Change) {
	p.Unseen = slices.DeleteFunc(p.Unseen, func(work unseenWork) bool {
		return work.Told || work.Host != "" && work.Host == session.Host && session.Worktree.GoesOn()
	})
	if change != nil && change.Problem != "" && !parts.Acceptable(*change) {
		p.Unseen = append(p.Unseen, unseenWork{Why: change.Problem, Host: session.Host})
	}
	for _, host := range session.Worktree.WorkedBefore() {
		p.Unseen = append(p.Unseen, unseenWork{Host: host, Why: fmt.Sprintf(
			"%s was at work on the host %s before, and nobody knows what it has committed there", session.Tier,
			plaintext.Line(host))})
	}
}

// inspects reports whether a session is asked for what it commits.
func (c *chainRun) inspects(s work) bool {
	repairs := s.Purpose == escalation.PurposeTier || s.Purpose == escalation.PurposeContinuation
	return c.Policy.Review.Reviews() && s.Tier >= escalation.TierSafeRepair && repairs && !c.Policy.DryRun
}

// unpushed reports whether the chain has a change that must be reviewed and pushed, or dropped by a person.
func (c *chainRun) unpushed() bool {
	return c.proposed != nil && (c.proposed.Change.Commit != "" || len(c.proposed.Unseen) > 0) &&
		c.Policy.Review.Mode == escalation.ReviewRequired
}

// offered returns the commit that a person would push with the answer override; empty if there is none.
func (c *chainRun) offered() string {
	if !c.unpushed() {
		return ""
	}
	return c.proposed.Change.Commit
}

// keep keeps what a session has committed that has just ended, however it ended. The argument change is nil if it has
// left nothing.
func (c *chainRun) keep(s work, session escalation.Session, change *activities.Change) {
	if !c.inspects(s) || change == nil && len(session.Worktree.WorkedBefore()) == 0 && !c.unpushed() {
		return
	}
	if c.proposed == nil {
		c.proposed = &proposedChange{Loop: c.newLoop()}
	}
	p := c.proposed
	p.Loop, p.Author, p.Ending = p.Loop.Turned(), session, nil
	p.Ran = p.Loop.State
	if c.Policy.Review.Mode == escalation.ReviewRequired {
		p.see(session, change)
	}
	if change != nil && parts.Acceptable(*change) && (change.Tree == "" || change.Tree != p.Change.Tree) {
		p.Change = *change
	}
}

// based completes the input of a session with the change of the chain that its worktree must have.
func (c *chainRun) based(s work, input *activities.RunTierInput) {
	p := c.proposed
	input.Carry = input.Inspect && c.Policy.Review.Mode == escalation.ReviewRequired
	if !input.Carry || p == nil {
		return
	}
	input.Base, input.At, input.Since = p.Pushed.Commit, p.Pushed, p.Loop.Reviewed
	if p.Change.Commit != "" {
		input.At = p.Change.Checkpoint()
	}
	input.Unseen, input.Correction = len(p.Unseen) > 0, c.correction(s)
}

// mustReview reports whether the change of the chain is reviewed now: when the chain has a result, and no further
// session follows that works on the change. A chain does not end well with a change that is not pushed.
func (c *chainRun) mustReview(
	s work, session escalation.Session, change *activities.Change, decision escalation.Decision,
) bool {
	if !c.inspects(s) {
		return c.mustSettle(decision)
	}
	concluded := session.Status == escalation.SessionCompleted && session.Verdict != nil &&
		session.Verdict.Status != escalation.VerdictFailed
	ends := decision.Action == escalation.DecisionComplete || decision.Action == escalation.DecisionGate
	asks := session.AsksPerson() && c.unpushed() && (change == nil || change.Commit == c.proposed.Loop.Commit)
	return concluded && ends && !asks && (change != nil || c.unpushed())
}

// mustSettle reports whether a decision would end the chain well although it has a change that is not pushed.
func (c *chainRun) mustSettle(decision escalation.Decision) bool {
	well := decision.Outcome == escalation.OutcomeHealthy || decision.Outcome == escalation.OutcomeResolved ||
		decision.Outcome == escalation.OutcomeKnown
	return c.unpushed() && decision.Action == escalation.DecisionComplete && well
}

// newLoop returns the loop for a change that no one has reviewed. An advisory review leads to no correction.
func (c *chainRun) newLoop() review.Loop {
	if c.Policy.Review.Mode != escalation.ReviewRequired {
		return review.NewLoop(review.Limits{})
	}
	return review.NewLoop(review.Limits{Fixes: c.Policy.Review.MaxFixes, Retries: c.Policy.Review.MaxFixes})
}

// reviewChange has the change of the chain reviewed after a session that has just ended, and returns the step that
// follows. The argument change describes the commits of that session; nil if it has left none. The argument decision is
// the decision on the session itself.
func (c *chainRun) reviewChange(
	ctx workflow.Context, s work, session escalation.Session, change *activities.Change, decision escalation.Decision,
) (step, error) {
	c.Sessions.Ended(ctx, session)
	p := c.proposed
	request := parts.ReviewRequest{Loop: p.Loop, Author: p.Author, Unclosed: &session}
	switch {
	case change != nil:
		request.Change = *change
	case !c.inspects(s): // another session has looked at the service
		request.Change = p.Change
	}
	return c.runReview(ctx, pending{work: s}, session, request, decision)
}

// do has the change of the chain reviewed that no session follows: its review did not take place, its push failed, or
// the chain is about to end well without its push.
func (s reviewStep) do(ctx workflow.Context, c *chainRun) (step, error) {
	p := c.proposed
	session := *c.Log.Chain.Worked()
	decision := escalation.Gated(*c.Policy, escalation.Decide(*c.Policy, session,
		escalation.DecisionInput{NoSplit: true}))
	request := parts.ReviewRequest{
		Loop: p.Loop, Author: p.Author, Change: p.Change, Continues: s.Continues,
		Passes: s.Passes,
	}
	if s.Request != nil {
		request.Guidance = s.Request.Guidance
	}
	return c.runReview(ctx, s.pending, session, request, decision)
}

// runReview takes the change of the chain as far as it comes without its author, and returns the step that follows. An
// advisory review only informs people. After a required one, the change is pushed, corrected, or left to a person. The
// argument decision is the one on session, which stands if the change is pushed and nobody has decided on its end.
func (c *chainRun) runReview(
	ctx workflow.Context, s pending, session escalation.Session, request parts.ReviewRequest,
	decision escalation.Decision,
) (step, error) {
	request.Problem, request.Request = c.problem(), c.input.Prompt
	p := c.proposed
	if stands := decision; p.Ending == nil && !c.inspects(s.work) { // another session has looked at the service
		p.Ending = &stands
	}
	if p.Ending != nil {
		decision = *p.Ending
	}
	result, err := c.takeFurther(ctx, s.work, request)
	if err != nil {
		return nil, c.abortIfCancelled(ctx, err)
	}
	about := parts.Proposal{Tier: p.Author.Tier, Problem: request.Problem}
	switch {
	case result.Stopped:
		decision = escalation.Cancelled()
	case c.Policy.Review.Mode != escalation.ReviewRequired:
		c.proposed = nil
		c.Reviews.Advise(ctx, request.Change, about)
	default:
		if p.Loop.State == review.StateApproved {
			c.push(ctx, about)
		}
		if p.Loop.State.Role() == review.Author && p.Change.Commit != "" {
			if result.Unclosed != nil {
				c.Sessions.CloseWithNext(*result.Unclosed)
			}
			return sessionStep{c.correct(s.work)}, nil
		}
		if p.Loop.State == review.StateGate {
			asks := escalation.DecideReview(p.Why)
			asks.Refused, asks.Until = result.Refused, result.Until
			decision = escalation.Gated(*c.Policy, asks)
			s = pending{work: c.authorWork()}
		}
	}
	if err := c.settle(ctx, session, result.Unclosed, decision); err != nil {
		return nil, err
	}
	return c.after(ctx, s, session, decision)
}

// takeFurther has the change of the chain checked and reviewed, as far as the state of its loop asks for it.
func (c *chainRun) takeFurther(ctx workflow.Context, s work, request parts.ReviewRequest) (parts.ReviewResult, error) {
	p := c.proposed
	if p.Loop.State == review.StateGate && !c.inspects(s) {
		p.Loop.State, p.Loop.Resume = p.Loop.Resume, ""
		request.Loop = p.Loop
	}
	judged := p.Loop.State.Role() == review.Author && request.Change.Commit == p.Loop.Commit &&
		request.Change.Commit != ""
	// a turn that nobody had planned has added nothing
	if judged && !c.inspects(s) && p.Loop.Before != "" && len(p.Unseen) == 0 {
		p.Loop.State, p.Loop.Before, judged = p.Loop.Before, "", false
		request.Loop = p.Loop
	}
	result := parts.ReviewResult{
		Loop: p.Loop, Unclosed: request.Unclosed,
		Decision: review.Decision{State: p.Loop.State, Reason: p.Why},
	}
	switch {
	case judged && !c.inspects(s): // the service is well, and the change is as its latest review has left it
		result.Loop, result.Decision = p.Loop.Unsettled(p.Why)
	case p.Loop.State != review.StateApproved:
		var err error
		asked := request
		asked.Change.Problem = cmp.Or(p.unseen(), request.Change.Problem)
		result, err = c.Reviews.Review(ctx, asked)
		c.Incidents.Send(ctx)
		if err != nil {
			return result, err
		}
		p.Change = parts.LatestChange(p.Change, request.Change, result.Decision)
		if result.Reviewer != nil {
			p.Ran = review.StateReview
		}
	}
	p.Loop, p.Why = result.Loop, result.Decision.Reason
	return result, nil
}

// push pushes the approved change of the chain. If that fails, the loop is at the gate.
func (c *chainRun) push(ctx workflow.Context, about parts.Proposal) {
	p := c.proposed
	after, decision := c.Reviews.Push(ctx, p.Loop, p.Change, about)
	if after.State == review.StateGate {
		p.Loop, p.Why = after, decision.Reason
		return
	}
	*p = proposedChange{Loop: c.newLoop().Accepting(p.Loop), Author: p.Author, Pushed: p.Change.Checkpoint()}
}

// authorWork returns the work of the latest author of the change.
func (c *chainRun) authorWork() work {
	author := c.proposed.Author
	return work{Tier: author.Tier, Parent: &author}
}

// correct returns the work in which the author continues its conversation to correct its change. If the conversation is
// full, a new session corrects it, as after a gate.
func (c *chainRun) correct(s work) work {
	author := c.proposed.Author
	if s.Tier != author.Tier || !c.inspects(s) {
		s = c.authorWork()
	}
	s.Continues, s.Request, s.Purpose = &author, nil, escalation.PurposeTier
	if c.Sessions.Full(&author, c.Policy.For(s.Tier)) {
		s.Continues = nil
	}
	s.Corrects, s.Chosen = true, false
	return s
}

// stopped describes the session before a gate, if that reviews or corrects the change of the chain; nil for other
// gates.
func (c *chainRun) stopped(s gateOpening) *review.Stopped {
	p := c.proposed
	if p == nil || !s.Corrects && s.decision.Rule != escalation.RuleReview {
		return nil
	}
	ran, resume := p.Ran, p.Loop.Resume
	if p.Loop.State.Role() == review.Author { // a correction has ended, or was refused
		resume = p.Loop.State
		if !s.Refused {
			ran = resume
		}
	}
	last := c.Log.Chain.Last()
	if last != nil && last.Purpose == escalation.PurposeRecheck { // its conversation is not the author's
		ran = ""
	}
	stopped := review.StoppedAt(ran, resume, last)
	return &stopped
}

// correction returns what a session must correct; nil for its usual work. The conversation of an interrupted
// correction has the findings. It may lack what checks have printed since.
func (c *chainRun) correction(s work) *activities.Correction {
	if c.offered() == "" {
		return nil
	}
	p := c.proposed
	loop := p.Loop.Turned()
	if loop.State == review.StateExecute && !s.Corrects || s.Chosen && loop.State != review.StateQualityRetry {
		return nil
	}
	of := &activities.Correction{Commit: p.Change.Commit, Findings: loop.Open}
	switch {
	case p.Change.Checks == review.QualityFailed && (loop.State == review.StateQualityRetry || len(of.Findings) == 0):
		of.Findings, of.CheckOutput = nil, p.Change.CheckOutput
	case loop.State == review.StateQualityRetry: // its checks could not run
		of.Findings, of.Why = nil, p.Why
	case len(of.Findings) == 0 || p.Ran == loop.State:
		of.Why = p.Why
	}
	return of
}

// afterReviewGate returns the step that follows the gate of a change that was not approved. An override pushes the
// commit that the gate has named; if that fails, a person is asked again. A fix runs the author again in a new session,
// or what did not take place: the review or the push. The author also repairs what keeps the checks from running.
func (c *chainRun) afterReviewGate(ctx workflow.Context, s pending, gate *escalation.Gate) (step, error) {
	p := c.proposed
	if gate.Answer.Action == escalation.GateOverride {
		p.Loop.Commit, p.Loop.Tree = p.Change.Commit, p.Change.Tree
	}
	p.Loop, _ = p.Loop.AfterGate(gate.Answer.Action)
	if ending, ends := gate.Ending(*gate.Answer); ends {
		if gate.Answer.Actor != "" && p.Loop.Approves(p.Change.Commit) {
			c.push(ctx, parts.Proposal{Tier: p.Author.Tier, Problem: c.problem()})
			if p.Loop.State == review.StateGate {
				p.Ending = &ending // also if the push succeeds later
				return c.stop(ctx, s, escalation.Gated(*c.Policy, escalation.DecideReview(p.Why)))
			}
		}
		return nil, c.record(ctx, ending)
	}
	if p.Loop.State == review.StateQuality {
		p.Loop.State, p.Loop.Before = review.StateQualityRetry, review.StateQuality
	}
	next := c.workFrom(s, gate)
	if p.Loop.State == review.StateReview || p.Loop.State == review.StateApproved {
		return reviewStep{pending{work: next}}, c.Log.Publish(ctx)
	}
	next.Corrects, p.Ending = true, nil
	return sessionStep{next}, c.Log.Publish(ctx)
}

// problem returns what the chain works on, in the words of whoever found it: of its issue, or of its first look.
func (c *chainRun) problem() string {
	if c.input.Issue != "" {
		return c.input.Issue
	}
	for i := range c.Log.Chain.Sessions {
		look := &c.Log.Chain.Sessions[i]
		if look.Tier == escalation.TierObserve && look.Purpose == escalation.PurposeTier && look.Verdict != nil {
			return look.Verdict.Summary + "\n" + look.Verdict.Findings
		}
	}
	return ""
}
