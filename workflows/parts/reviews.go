package parts

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// Reviews takes the loops of authors and reviewers through their states: it has what an author has committed checked
// and reviewed. Package review decides on each step.
type Reviews struct {
	log      *EventLog
	policy   *escalation.Policy
	sessions *Sessions
}

// ReviewRequest describes a change to review.
type ReviewRequest struct {
	// loop is the loop in the state in which the author has worked.
	Loop review.Loop
	// author is the session that has made the change. Its end is in the visible state.
	Author escalation.Session
	Change activities.Change
	// unclosed is a session whose end is not recorded yet, such as that of the author; nil if there is none.
	Unclosed *escalation.Session
	// problem is what was found before the author began, and request is the request of a person. Both can be empty.
	Problem, Request string
	// task is the plan that the change belongs to; nil if it belongs to none. lost lists what the author has removed
	// from the plan, and doubts lists what else it has done with the plan that a person must approve.
	Task         *activities.PlanTask
	Lost, Doubts []string
	// continues is an interrupted session of a reviewer that the reviewer continues, because a person chose so at a
	// gate, or a limit of the account is over (goesOn); nil for a new conversation. guidance is what that person has
	// said to the reviewer; it can be empty.
	Continues *escalation.Session
	goesOn    bool
	Guidance  string
	// passes lists the rules that the reviewer's session may pass, because that person has answered.
	Passes []escalation.Rule
}

// phase returns the number of the phase of a plan; empty if the change belongs to no plan.
func (r ReviewRequest) phase() string {
	switch {
	case r.Task == nil:
		return ""
	case r.Task.Amend:
		return escalation.PlanItself
	default:
		return r.Task.Phase.Number
	}
}

// ReviewResult is the result of a review.
type ReviewResult struct {
	Loop     review.Loop
	Decision review.Decision
	// reviewer is the reviewer's session; nil if no reviewer has run.
	Reviewer *escalation.Session
	// unclosed is the session whose end the caller must record: that of the reviewer, or that of the author if no
	// reviewer's session was requested; nil if there is none.
	Unclosed *escalation.Session
	// refused is the rule that has refused the reviewer's session, or the temporary limit that has ended it; empty if
	// there is none. From until on other chains may repair.
	Refused escalation.Rule
	Until   time.Time
	// stopped reports that the workflow was cancelled while the reviewer ran.
	Stopped bool
}

// Progress counts the findings since an earlier state of the loop.
func (r ReviewResult) Progress(before review.Loop) (totals escalation.ReviewTotals) {
	totals.Found, totals.Fixed = r.Loop.Progress(before)
	return totals
}

// Review takes a loop from the author's turn to the next decision. It adds an event and the review to the visible
// state. The opening of the reviewer's session also records the end of the author's session.
func (r *Reviews) Review(ctx workflow.Context, request ReviewRequest) (ReviewResult, error) {
	change := request.Change
	result := ReviewResult{Loop: request.Loop, Unclosed: request.Unclosed}
	turn := review.Authored{
		Commit: change.Commit, Tree: change.Tree, Files: change.Files, Scope: r.scope(request),
		Problem: change.Problem, Lost: request.Lost, Doubts: slices.Concat(change.Doubts, request.Doubts),
	}
	switch {
	case result.Loop.State.Role() == review.Author:
		if turn.Commit == change.Base { // what it began with
			turn.Commit = ""
		}
		result.Loop, result.Decision = result.Loop.AfterAuthor(turn)
	case result.Loop.State == review.StateQuality:
		result.Loop = result.Loop.Inspected(turn)
	}
	if result.Loop.State == review.StateQuality {
		result.Loop, result.Decision = result.Loop.AfterQuality(change.Checks, lastLines(change.CheckOutput))
	}
	var verdict *review.Verdict
	if result.Loop.State == review.StateReview {
		var err error
		if verdict, err = r.runReviewer(ctx, request, &result); err != nil {
			return result, err
		}
	}
	r.add(ctx, request, result, verdict)
	return result, nil
}

// LatestChange returns the change on which a person would decide: the one after an author's turn or, if the turn has
// left nothing new, the one before.
func LatestChange(before, after activities.Change, decision review.Decision) activities.Change {
	if !Acceptable(after) || before.Commit != "" && decision.Rule == review.RuleNoCommit {
		return before
	}
	return after
}

// Acceptable reports whether a person may accept the change, because the gate names it: also one whose author did not
// conclude, and one that cannot be listed.
func Acceptable(change activities.Change) bool {
	return change.Branch != "" && change.Commit != "" && change.Commit != change.Base
}

// scope returns what a change may contain without a person. Who amends a plan may change that file only.
func (r *Reviews) scope(request ReviewRequest) review.Scope {
	within := request.Change.Within
	if request.Task != nil && request.Task.Amend {
		within = path.Join(within, request.Task.File)
	}
	return review.Scope{
		Within: within, Listed: request.Task != nil || r.policy.Review.Mode == escalation.ReviewRequired,
		MaxFiles: r.policy.Review.MaxFiles, MaxLines: r.policy.Review.MaxLines,
	}
}

// runReviewer runs the session of a reviewer, and completes result. If the session is not admitted, the change is not
// reviewed.
func (r *Reviews) runReviewer(
	ctx workflow.Context, request ReviewRequest, result *ReviewResult,
) (*review.Verdict, error) {
	if request.Unclosed != nil {
		r.sessions.CloseWithNext(*request.Unclosed)
	}
	result.Unclosed = nil
	for {
		opening, err := r.sessions.Open(ctx, SessionRequest{
			Tier: escalation.TierObserve, Purpose: escalation.PurposeReview, Phase: request.phase(),
			Context: request.continuity(), Origin: request.Continues, Continues: request.Continues != nil,
			WaitingSince: r.sessions.WaitingSince, Passes: request.Passes,
		})
		if err != nil {
			return nil, err
		}
		if refusal := opening.Refusal; refusal != nil {
			again, err := r.sessions.Waits(ctx, escalation.DecideRefused(*refusal))
			if err != nil {
				return nil, err
			}
			if again {
				continue
			}
			result.Refused, result.Until = refusal.Rule, refusal.EndsAt
			result.Loop, result.Decision = result.Loop.AfterReview(review.Reviewed{Problem: refusal.Reason})
			return nil, nil
		}
		request.Passes = nil
		session, reviewed := r.runReview(ctx, request, result.Loop, opening.Session)
		r.sessions.Ended(ctx, session)
		again, err := r.again(ctx, session, &request)
		if err != nil {
			return nil, err
		}
		if again {
			continue
		}
		result.Reviewer, result.Unclosed, result.Stopped = &session, &session,
			session.Status == escalation.SessionStopped
		result.Refused, result.Until = session.PassingLimit()
		result.Loop, result.Decision = result.Loop.AfterReview(review.Reviewed{
			Commit: request.Change.Commit, Verdict: reviewed.Verdict, Problem: reviewed.Problem,
		})
		return reviewed.Verdict, nil
	}
}

// again prepares the request for another session of the reviewer, and reports whether one follows a session that has
// ended: after a limit, or without the conversation that cannot be continued.
func (r *Reviews) again(ctx workflow.Context, session escalation.Session, request *ReviewRequest) (bool, error) {
	switch session.Treatment().Then {
	case escalation.SequelWait:
		r.sessions.CloseWithNext(session)
		again, err := r.sessions.Waits(ctx, escalation.DecideLimited(*r.policy, session, r.sessions.WaitingSince))
		if again && session.BeganWork() {
			request.Continues, request.goesOn = &session, true
		}
		return again, err
	case escalation.SequelAnew:
		r.sessions.CloseWithNext(session)
		request.Continues, request.goesOn = nil, false
		return true, nil
	case escalation.SequelStop:
	}
	return false, nil
}

// continuity says how the reviewer's session gets its context.
func (r ReviewRequest) continuity() escalation.ContinuityChoice {
	choice := escalation.ContinuityChoice{Continuity: escalation.ContinuityFresh, Reason: escalation.ReasonIndependent}
	if r.goesOn {
		choice.Reason = escalation.ReasonInterrupted
	}
	return choice
}

// runReview runs the agent of a reviewer, and returns the ended session with its result.
func (r *Reviews) runReview(
	ctx workflow.Context, request ReviewRequest, loop review.Loop, session escalation.Session,
) (escalation.Session, activities.RunReviewResult) {
	var tiers *activities.Tiers
	var reviewed activities.RunReviewResult
	input := activities.RunReviewInput{
		ChainID: session.ChainID, FirstRunID: session.FirstRunID, SessionID: session.SessionID,
		Policy: r.policy.OfReviewer().OfSession(session.Tier), Directory: r.sessions.Directory,
		Change: request.Change.ToShow(), Task: request.Task, ForPerson: loop.ForPerson,
		Problem: request.Problem, Request: request.Request, Services: r.log.Chain.Services,
		Before: loop.Open, Accepted: loop.Accepted, BudgetUSD: session.BudgetUSD, Guidance: request.Guidance,
	}
	if request.Continues != nil {
		input.Continues = request.Continues.SessionID
	}
	ended, judged := r.sessions.Run(ctx, session, tiers.RunReview, input, &reviewed)
	if !judged {
		reviewed.Problem = ended.Error
	}
	return ended, reviewed
}

// add adds the review to the visible state, with an event that says which rule has decided.
func (r *Reviews) add(ctx workflow.Context, request ReviewRequest, result ReviewResult, verdict *review.Verdict) {
	change := request.Change
	done := escalation.Review{
		AuthorID: request.Author.SessionID, Phase: request.phase(), Branch: change.Branch, Base: change.Base,
		Commit: change.Commit, Files: len(change.Files), Lines: review.Lines(change.Files),
		Checks: string(change.Checks), Rule: string(result.Decision.Rule), Reason: Clip(result.Decision.Reason),
		Approved: result.Loop.Approves(change.Commit),
	}
	totals := result.Progress(request.Loop)
	if result.Reviewer != nil {
		done.ReviewerID = result.Reviewer.SessionID
		totals.ReviewCostUSD = result.Reviewer.CostUSD
	}
	r.log.Chain.Reviewed = r.log.Chain.Reviewed.Plus(totals)
	if verdict != nil {
		done.Status = string(verdict.Status)
		for _, finding := range result.Loop.Open {
			done.Findings = append(done.Findings, plaintext.Cut(finding.Describe(), maxFindingText))
		}
		for _, note := range result.Decision.Notes {
			done.Findings = append(done.Findings, plaintext.Cut(note, maxFindingText))
		}
	}
	severity := escalation.SeverityWarning
	if done.Approved {
		severity = escalation.SeverityInfo
	}
	r.log.Add(ctx, escalation.Event{
		Kind: escalation.EventReview, Severity: severity, SessionID: done.ReviewerID,
		Message: fmt.Sprintf("%s is %s", describeReviewed(done), done.Describe()),
	})
	all := &r.log.Chain.Reviews
	*all = append(*all, done)
	*all = (*all)[max(0, len(*all)-escalation.MaxReviews):]
}

// describeReviewed names what a review is about. A plan is reviewed before it has a branch.
func describeReviewed(done escalation.Review) string {
	if done.Branch == "" {
		return cmp.Or(done.Subject(), "the change")
	}
	return "the change on " + done.Branch
}

// maxFindingText limits a finding in the visible state, in characters.
const maxFindingText = 300

// lastLines returns the end of what a program has printed, on one line.
func lastLines(output string) string {
	text := []rune(plaintext.Compact(output))
	return string(text[max(0, len(text)-maxFindingText):])
}
