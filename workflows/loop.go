package workflows

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

// reviews takes the loops of authors and reviewers through their states: it has what an author has committed checked and
// reviewed. Package review decides on each step.
type reviews struct {
	log      *eventLog
	policy   *escalation.Policy
	sessions *sessions
}

// reviewRequest describes a change to review.
type reviewRequest struct {
	// loop is the loop in the state in which the author has worked.
	loop review.Loop
	// author is the session that has made the change. Its end is in the visible state.
	author escalation.Session
	change activities.Change
	// unclosed is a session whose end is not recorded yet, such as that of the author; nil if there is none.
	unclosed *escalation.Session
	// problem is what was found before the author began, and request is the request of a person. Both can be empty.
	problem, request string
	// task is the plan that the change belongs to; nil if it belongs to none. lost lists what the author has removed from the
	// plan, and doubts lists what else it has done with the plan that a person must approve.
	task         *activities.PlanTask
	lost, doubts []string
	// continues is an interrupted session of a reviewer that the reviewer continues, because a person chose so at a gate, or a limit of
	// the account is over (goesOn); nil for a new conversation. guidance is what that person has said to the reviewer; it can be empty.
	continues *escalation.Session
	goesOn    bool
	guidance  string
	// passes lists the rules that the reviewer's session may pass, because that person has answered.
	passes []escalation.Rule
}

// phase returns the number of the phase of a plan; empty if the change belongs to no plan.
func (r reviewRequest) phase() string {
	switch {
	case r.task == nil:
		return ""
	case r.task.Amend:
		return escalation.PlanItself
	default:
		return r.task.Phase.Number
	}
}

// reviewResult is the result of a review.
type reviewResult struct {
	loop     review.Loop
	decision review.Decision
	// reviewer is the reviewer's session; nil if no reviewer has run.
	reviewer *escalation.Session
	// unclosed is the session whose end the caller must record: that of the reviewer, or that of the author if no reviewer's
	// session was requested; nil if there is none.
	unclosed *escalation.Session
	// refused is the rule that has refused the reviewer's session, or the temporary limit that has ended it; empty if there is none. From
	// until on other chains may repair.
	refused escalation.Rule
	until   time.Time
	// stopped reports that the workflow was cancelled while the reviewer ran.
	stopped bool
}

// progress counts the findings since an earlier state of the loop.
func (r reviewResult) progress(before review.Loop) (totals escalation.ReviewTotals) {
	totals.Found, totals.Fixed = r.loop.Progress(before)
	return totals
}

// review takes a loop from the author's turn to the next decision. It adds an event and the review to the visible state. The
// opening of the reviewer's session also records the end of the author's session.
func (r *reviews) review(ctx workflow.Context, request reviewRequest) (reviewResult, error) {
	change := request.change
	result := reviewResult{loop: request.loop, unclosed: request.unclosed}
	turn := review.Authored{
		Commit: change.Commit, Tree: change.Tree, Files: change.Files, Scope: r.scope(request),
		Problem: change.Problem, Lost: request.lost, Doubts: slices.Concat(change.Doubts, request.doubts),
	}
	switch {
	case result.loop.State.Role() == review.Author:
		if turn.Commit == change.Base { // what it began with
			turn.Commit = ""
		}
		result.loop, result.decision = result.loop.AfterAuthor(turn)
	case result.loop.State == review.StateQuality:
		result.loop = result.loop.Inspected(turn)
	}
	if result.loop.State == review.StateQuality {
		result.loop, result.decision = result.loop.AfterQuality(change.Checks, lastLines(change.CheckOutput))
	}
	var verdict *review.Verdict
	if result.loop.State == review.StateReview {
		var err error
		if verdict, err = r.runReviewer(ctx, request, &result); err != nil {
			return result, err
		}
	}
	r.add(ctx, request, result, verdict)
	return result, nil
}

// latestChange returns the change on which a person would decide: the one after an author's turn or, if the turn has left nothing
// new, the one before.
func latestChange(before, after activities.Change, decision review.Decision) activities.Change {
	if !acceptable(after) || before.Commit != "" && decision.Rule == review.RuleNoCommit {
		return before
	}
	return after
}

// acceptable reports whether a person may accept the change, because the gate names it: also one whose author did not conclude, and one
// that cannot be listed.
func acceptable(change activities.Change) bool {
	return change.Branch != "" && change.Commit != "" && change.Commit != change.Base
}

// scope returns what a change may contain without a person. Who amends a plan may change that file only.
func (r *reviews) scope(request reviewRequest) review.Scope {
	within := request.change.Within
	if request.task != nil && request.task.Amend {
		within = path.Join(within, request.task.File)
	}
	return review.Scope{
		Within: within, Listed: request.task != nil || r.policy.Review.Mode == escalation.ReviewRequired,
		MaxFiles: r.policy.Review.MaxFiles, MaxLines: r.policy.Review.MaxLines,
	}
}

// runReviewer runs the session of a reviewer, and completes result. If the session is not admitted, the change is not
// reviewed.
func (r *reviews) runReviewer(ctx workflow.Context, request reviewRequest, result *reviewResult) (*review.Verdict, error) {
	if request.unclosed != nil {
		r.sessions.closeWithNext(*request.unclosed)
	}
	result.unclosed = nil
	for {
		opening, err := r.sessions.open(ctx, sessionRequest{
			tier: escalation.TierObserve, purpose: escalation.PurposeReview, phase: request.phase(), context: request.continuity(),
			origin: request.continues, continues: request.continues != nil, waitingSince: r.sessions.waitingSince, passes: request.passes,
		})
		if err != nil {
			return nil, err
		}
		if refusal := opening.Refusal; refusal != nil {
			again, err := r.sessions.waits(ctx, escalation.DecideRefused(*refusal))
			if err != nil {
				return nil, err
			}
			if again {
				continue
			}
			result.refused, result.until = refusal.Rule, refusal.EndsAt
			result.loop, result.decision = result.loop.AfterReview(review.Reviewed{Problem: refusal.Reason})
			return nil, nil
		}
		request.passes = nil
		session, reviewed := r.runReview(ctx, request, result.loop, opening.Session)
		r.sessions.ended(ctx, session)
		again, err := r.again(ctx, session, &request)
		if err != nil {
			return nil, err
		}
		if again {
			continue
		}
		result.reviewer, result.unclosed, result.stopped = &session, &session, session.Status == escalation.SessionStopped
		result.refused, result.until = session.PassingLimit()
		result.loop, result.decision = result.loop.AfterReview(review.Reviewed{
			Commit: request.change.Commit, Verdict: reviewed.Verdict, Problem: reviewed.Problem,
		})
		return reviewed.Verdict, nil
	}
}

// again prepares the request for another session of the reviewer, and reports whether one follows a session that has ended: after a limit,
// or without the conversation that cannot be continued.
func (r *reviews) again(ctx workflow.Context, session escalation.Session, request *reviewRequest) (bool, error) {
	switch session.Treatment().Then {
	case escalation.SequelWait:
		r.sessions.closeWithNext(session)
		again, err := r.sessions.waits(ctx, escalation.DecideLimited(*r.policy, session, r.sessions.waitingSince))
		if again && session.BeganWork() {
			request.continues, request.goesOn = &session, true
		}
		return again, err
	case escalation.SequelAnew:
		r.sessions.closeWithNext(session)
		request.continues, request.goesOn = nil, false
		return true, nil
	case escalation.SequelStop:
	}
	return false, nil
}

// continuity says how the reviewer's session gets its context.
func (r reviewRequest) continuity() escalation.ContinuityChoice {
	choice := escalation.ContinuityChoice{Continuity: escalation.ContinuityFresh, Reason: escalation.ReasonIndependent}
	if r.goesOn {
		choice.Reason = escalation.ReasonInterrupted
	}
	return choice
}

// runReview runs the agent of a reviewer, and returns the ended session with its result.
func (r *reviews) runReview(
	ctx workflow.Context, request reviewRequest, loop review.Loop, session escalation.Session,
) (escalation.Session, activities.RunReviewResult) {
	var tiers *activities.Tiers
	var reviewed activities.RunReviewResult
	input := activities.RunReviewInput{
		ChainID: session.ChainID, FirstRunID: session.FirstRunID, SessionID: session.SessionID,
		Policy: r.policy.OfReviewer().OfSession(session.Tier), Directory: r.sessions.directory,
		Change: request.change.ToShow(), Task: request.task, ForPerson: loop.ForPerson,
		Problem: request.problem, Request: request.request, Services: r.log.chain.Services,
		Before: loop.Open, Accepted: loop.Accepted, BudgetUSD: session.BudgetUSD, Guidance: request.guidance,
	}
	if request.continues != nil {
		input.Continues = request.continues.SessionID
	}
	ended, judged := r.sessions.run(ctx, session, tiers.RunReview, input, &reviewed)
	if !judged {
		reviewed.Problem = ended.Error
	}
	return ended, reviewed
}

// add adds the review to the visible state, with an event that says which rule has decided.
func (r *reviews) add(ctx workflow.Context, request reviewRequest, result reviewResult, verdict *review.Verdict) {
	change := request.change
	done := escalation.Review{
		AuthorID: request.author.SessionID, Phase: request.phase(), Branch: change.Branch, Base: change.Base, Commit: change.Commit,
		Files: len(change.Files), Lines: review.Lines(change.Files), Checks: string(change.Checks),
		Rule: string(result.decision.Rule), Reason: clip(result.decision.Reason), Approved: result.loop.Approves(change.Commit),
	}
	totals := result.progress(request.loop)
	if result.reviewer != nil {
		done.ReviewerID = result.reviewer.SessionID
		totals.ReviewCostUSD = result.reviewer.CostUSD
	}
	r.log.chain.Reviewed = r.log.chain.Reviewed.Plus(totals)
	if verdict != nil {
		done.Status = string(verdict.Status)
		for _, finding := range result.loop.Open {
			done.Findings = append(done.Findings, plaintext.Cut(finding.Describe(), maxFindingText))
		}
		for _, note := range result.decision.Notes {
			done.Findings = append(done.Findings, plaintext.Cut(note, maxFindingText))
		}
	}
	severity := escalation.SeverityWarning
	if done.Approved {
		severity = escalation.SeverityInfo
	}
	r.log.add(ctx, escalation.Event{
		Kind: escalation.EventReview, Severity: severity, SessionID: done.ReviewerID,
		Message: fmt.Sprintf("%s is %s", describeReviewed(done), done.Describe()),
	})
	all := &r.log.chain.Reviews
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
