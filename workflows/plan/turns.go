package plan

import (
	"cmp"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/workflows/parts"
)

// author runs a turn of the author, and has the result checked and reviewed.
func (p *planRun) author(ctx workflow.Context) error {
	opening, err := p.Sessions.Open(ctx, p.authorRequest())
	if err != nil {
		return p.abortIfCancelled(ctx, err)
	}
	if opening.Refusal != nil {
		return p.refused(ctx, *opening.Refusal)
	}
	p.at.Passes = nil
	var tiers *activities.Tiers
	var result activities.RunAuthorResult
	session, judged := p.Sessions.Run(ctx, opening.Session, tiers.RunAuthor, p.authorInput(opening.Session), &result)
	if session.BeganWork() || p.at.Continues == nil { // otherwise the calls before it still have no result
		p.Sessions.InFlight = result.InFlight
	}
	p.Sessions.Ended(ctx, session)
	p.keep(session, result.Change)
	for _, host := range session.Worktree.WorkedBefore() {
		p.at.Unseen = append(p.at.Unseen, fmt.Sprintf(
			"its author was at work on the host %s before, and nobody knows what it has committed there",
			plaintext.Line(host)))
	}
	then := session.Treatment().Then
	switch {
	case session.Status == escalation.SessionStopped:
		p.Sessions.CloseWithNext(session)
		return p.end(ctx, escalation.Cancelled())
	case then == escalation.SequelAnew:
		p.Sessions.CloseWithNext(session)
		p.at.Anew, p.at.Continues, p.at.GoesOn = true, nil, false
		if session.Ending == escalation.EndingRefused {
			p.at.Refusal = session.Error
		}
		return p.show(ctx)
	case then == escalation.SequelWait:
		decision := escalation.DecideLimited(*p.Policy, session, p.Sessions.WaitingSince)
		if decision.Action == escalation.DecisionWait {
			p.Sessions.CloseWithNext(session)
			if session.BeganWork() {
				p.at.Continues, p.at.GoesOn = parts.Brief(session), true
			}
		}
		if again, err := p.Sessions.Waits(ctx, decision); again || err != nil {
			return err
		}
	}
	p.at.Author, p.at.Anew, p.at.Continues, p.at.GoesOn, p.at.Guidance, p.at.Refusal = parts.Brief(session), false,
		nil, false, "", ""
	change := activities.Change{}
	if result.Change != nil {
		change = *result.Change
	}
	change.Problem = cmp.Or(authorProblem(session, result), change.Problem)
	if !judged {
		change.Problem += "; nobody knows its commits"
	}
	return p.reviewTurn(ctx, p.reviewRequest(session, change, false))
}

// keep keeps what a session of the author has left, however it ended, so that the next session works on it, on any
// host.
func (p *planRun) keep(session escalation.Session, change *activities.Change) {
	if session.BeganWork() {
		p.at.Author = parts.Brief(session)
	}
	if change == nil || !parts.Acceptable(*change) || change.Problem == "" && len(change.Files) == 0 {
		return
	}
	if before := p.at.Change; before == nil || change.Tree == "" || change.Tree != before.Tree {
		p.at.Change = change
	}
}

// authorProblem says why an author's session has not done its work; empty if it has.
func authorProblem(session escalation.Session, result activities.RunAuthorResult) string {
	switch work := result.Work; {
	case session.Status != escalation.SessionCompleted:
		return fmt.Sprintf("the author's session %s: %s", escalation.InWords(session.Status), session.Error)
	case work == nil:
		return result.Problem
	case work.Status != review.WorkComplete:
		return fmt.Sprintf("the author says %s: %s", work.Status, parts.Clip(work.Summary))
	}
	return ""
}

// authorRequest describes the author's next session. A correction goes on in the conversation of the turn before,
// unless a person wants a new one, or that conversation is lost or full.
func (p *planRun) authorRequest() parts.SessionRequest {
	request := parts.SessionRequest{
		Tier: p.Policy.AuthorTier(), Purpose: escalation.PurposeAuthor, Phase: p.Log.Chain.Plan.Phase,
		Context: escalation.ContinuityChoice{
			Continuity: escalation.ContinuityFresh,
			Reason:     escalation.ReasonPhase,
		},
		WaitingSince: p.Sessions.WaitingSince, Passes: p.at.Passes,
	}
	origin, reason := p.at.Continues, escalation.ReasonContinued
	if p.at.GoesOn {
		reason = escalation.ReasonInterrupted
	}
	if origin == nil && !p.at.Anew && p.at.Loop.State != review.StateExecute {
		origin, reason = p.at.Author, escalation.ReasonCorrection
		if origin != nil && p.Sessions.Full(origin, p.Policy.OfAuthor().For(request.Tier)) {
			origin, request.Context.Reason = nil, escalation.ReasonContextPressure
		}
	}
	if origin != nil {
		request.Origin, request.Continues = origin, true
		request.Context = escalation.ContinuityChoice{Continuity: escalation.ContinuityResume, Reason: reason}
	}
	return request
}

// authorInput returns the input for a session of the author.
func (p *planRun) authorInput(session escalation.Session) activities.RunAuthorInput {
	input := activities.RunAuthorInput{
		ChainID: session.ChainID, FirstRunID: session.FirstRunID, SessionID: session.SessionID, Tier: session.Tier,
		Policy: p.Policy.OfAuthor().OfSession(session.Tier), Directory: p.Sessions.Directory, Task: p.planTask(),
		From: p.at.From, Request: p.input.Prompt, Guidance: p.at.Guidance, Gate: p.Log.Chain.GateBefore(),
		Correction: p.correction(), Since: p.at.Loop.Reviewed, Refusal: p.at.Refusal, BudgetUSD: session.BudgetUSD,
	}
	if change := p.at.Change; change != nil && parts.Acceptable(*change) {
		input.At = change.Checkpoint()
	}
	input.Begins = p.at.Author == nil && input.At.Commit == ""
	if request := p.authorRequest(); request.Origin != nil {
		input.ParentSessionID = request.Origin.SessionID
		input.Continues = p.at.Continues != nil
	}
	if input.Continues {
		input.InFlight = p.Sessions.InFlight
	}
	return input
}

// planTask describes the current phase for an author or a reviewer.
func (p *planRun) planTask() activities.PlanTask {
	task := activities.PlanTask{File: p.input.File, Title: p.at.Plan.Title, Amend: p.task == escalation.PlanReviewed}
	if !task.Amend {
		task.Phase = p.at.Phases[p.at.Next]
	}
	return task
}

// correction returns what the author must correct; nil if it begins. The conversation of an interrupted correction has
// the findings. It may lack what checks have printed since. A new author of work that did not come to its checks gets
// the reason.
func (p *planRun) correction() *activities.Correction {
	loop, left := p.at.Loop, p.offered()
	switch {
	case p.at.Continues != nil && loop.State != review.StateQualityRetry:
		return nil
	case loop.State == review.StateQualityRetry:
		return &activities.Correction{Commit: loop.Commit, CheckOutput: p.at.Change.CheckOutput, Why: p.at.Reason}
	case loop.State == review.StateAutoFix && len(loop.Open) > 0 && p.at.Ran != loop.State:
		return &activities.Correction{Commit: loop.Commit, Findings: loop.Open}
	case loop.State == review.StateAutoFix:
		return &activities.Correction{Commit: loop.Commit, Findings: loop.Open, Why: p.at.Reason}
	case left == "" && p.at.Reason == "":
		return nil
	}
	return &activities.Correction{Commit: left, Why: cmp.Or(p.at.Reason,
		"its author did not finish, and cannot go on in its conversation")}
}

// check runs the checks again that could not run, and has the change reviewed.
func (p *planRun) check(ctx workflow.Context) error {
	var tiers *activities.Tiers
	var change activities.Change
	checking := parts.WithTier(ctx, p.Policy.OfAuthor(), p.Policy.AuthorTier(), "run the checks again")
	if err := workflow.ExecuteActivity(checking, tiers.InspectRun, p.authorInput(*p.at.Author)).Get(checking,
		&change); err != nil {
		if ctx.Err() != nil {
			return p.end(ctx, escalation.Cancelled())
		}
		change, change.Checks, change.CheckOutput = *p.at.Change, review.QualityUnknown, parts.RootMessage(err)
	}
	if change.Commit != p.at.Loop.Commit {
		problem := cmp.Or(change.Problem, fmt.Sprintf("the worktree has the commit %s now, and not %s", change.Commit,
			p.at.Loop.Commit))
		change, change.Checks, change.CheckOutput = *p.at.Change, review.QualityUnknown, problem
	}
	return p.reviewTurn(ctx, p.reviewRequest(*p.at.Author, change, true))
}

// reviewPhase has the latest change reviewed.
func (p *planRun) reviewPhase(ctx workflow.Context) error {
	var author escalation.Session
	if p.at.Author != nil {
		author = *p.at.Author
	}
	request := p.reviewRequest(author, *p.at.Change, true)
	request.Continues, request.Guidance, request.Passes = p.at.Continues, p.at.Guidance, p.at.Passes
	p.at.Continues, p.at.Guidance, p.at.Passes = nil, "", nil
	return p.reviewTurn(ctx, request)
}

// reviewRequest describes the change of the current phase. The argument closed reports that the record of the author's
// session is closed, or that there is none.
func (p *planRun) reviewRequest(author escalation.Session, change activities.Change, closed bool) parts.ReviewRequest {
	task := p.planTask()
	request := parts.ReviewRequest{
		Loop: p.at.Loop, Author: author, Change: change, Request: p.input.Prompt, Task: &task,
	}
	if !closed {
		request.Unclosed = &author
	}
	if change.Problem == "" && change.Commit != p.at.From.Commit {
		request.Lost, request.Doubts = p.lost(change), p.doubts(change)
	}
	request.Doubts = append(request.Doubts, p.at.Unseen...)
	return request
}

// lost lists what a change has removed from the plan, and what it says of other phases.
func (p *planRun) lost(change activities.Change) []string {
	switch {
	case change.PlanProblem != "":
		return []string{"the plan cannot be read any more: " + change.PlanProblem}
	case change.Plan == nil:
		return nil
	case p.task == escalation.PlanReviewed:
		return p.at.Plan.LostPhases(*change.Plan)
	default:
		return append(p.at.Plan.Lost(*change.Plan), p.at.Plan.Ahead(*change.Plan, p.at.Phases[p.at.Next].Number)...)
	}
}

// doubts lists what a change does with the plan that a person must approve. Who amends a plan may rewrite it.
func (p *planRun) doubts(change activities.Change) []string {
	if change.Plan == nil || p.task == escalation.PlanReviewed {
		return nil
	}
	var doubts []string
	if phase := change.Plan.Phase(p.at.Phases[p.at.Next].Number); phase != nil && len(phase.Open()) > 0 {
		doubts = append(doubts, "it leaves entries of its checklist open: "+strings.Join(phase.Open(), "; "))
	}
	if change.Plan.Digest != p.at.Plan.Digest {
		doubts = append(doubts, "it changes the text of the plan")
	}
	return doubts
}

// reviewTurn has a change checked and reviewed as far as its loop allows, and keeps the result.
func (p *planRun) reviewTurn(ctx workflow.Context, request parts.ReviewRequest) error {
	result, err := p.Reviews.Review(ctx, request)
	if err != nil {
		return p.abortIfCancelled(ctx, err)
	}
	if latest := request.Change; latest.Commit != "" {
		if p.at.Change != nil {
			latest = parts.LatestChange(*p.at.Change, latest, result.Decision)
		}
		p.at.Change = &latest
	}
	switch {
	case result.Reviewer != nil:
		p.at.Ran = review.StateReview
	case request.Loop.State.Role() == review.Author:
		p.at.Ran = request.Loop.State
	}
	phase := p.Log.Chain.Plan.Current()
	// without the cost, which counts with the session
	phase.ReviewTotals = phase.ReviewTotals.Plus(result.Progress(request.Loop))
	latest := p.Log.Chain.Reviews[len(p.Log.Chain.Reviews)-1]
	phase.Checks, phase.Verdict = latest.Checks, latest.Status
	p.at.Loop, p.at.Reason = result.Loop, result.Decision.Reason
	if result.Unclosed != nil {
		p.Sessions.CloseWithNext(*result.Unclosed)
	}
	if result.Stopped {
		return p.end(ctx, escalation.Cancelled())
	}
	if result.Loop.State == review.StateGate {
		p.at.Why = escalation.DecideReview(result.Decision.Reason)
		p.at.Why.Refused = result.Refused
	}
	return p.show(ctx)
}

// abortIfCancelled ends a cancelled workflow. If it is not cancelled, abortIfCancelled returns err.
func (p *planRun) abortIfCancelled(ctx workflow.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return p.end(ctx, escalation.Cancelled())
}
