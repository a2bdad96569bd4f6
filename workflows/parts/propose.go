package parts

import (
	"cmp"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/change/forge"
	"github.com/claudeops/claudeops/internal/escalation"
)

// Proposal is what a pull request says about a change, besides the change and its latest review.
type Proposal struct {
	// tier is the tier of the author.
	Tier escalation.Tier
	// title is the title of a new pull request; empty for the first line of the commit's message.
	Title string
	// problem is what was found before the author began; empty if that is not known.
	Problem string
	// phases are the phases of the plan that the change carries out; empty if there is no plan.
	Phases []escalation.PlanPhase
	// approved reports that a reviewer has approved the commit, although its review may no longer be in the visible
	// state.
	Approved bool
}

// propose proposes an approved change that was pushed in a pull request, if its repository is at a forge. A failure is
// an event: the commit stays approved and pushed.
func (r *Reviews) propose(ctx workflow.Context, change activities.Change, about Proposal, byPerson bool) {
	r.write(ctx, change, about, activities.ProposeRequest{
		Title: cmp.Or(about.Title, subjectOf(change)), ByPerson: byPerson, Problem: about.Problem, Phases: about.Phases,
		CheckOutput: change.CheckOutput, Previews: change.Previews,
	})
}

// subjectOf returns the first line of the message of a change.
func subjectOf(change activities.Change) string {
	first, _, _ := strings.Cut(change.Message, "\n")
	return forge.Title(first)
}

// Advise adds the latest review to the pull request that the author has opened, if it has opened one.
func (r *Reviews) Advise(ctx workflow.Context, change activities.Change, about Proposal) {
	r.write(ctx, change, about, activities.ProposeRequest{
		Comment: true, CheckOutput: change.CheckOutput, Previews: change.Previews,
	})
}

// write writes a pull request about the latest review, or a comment on it, and adds its address to the review.
func (r *Reviews) write(
	ctx workflow.Context, change activities.Change, about Proposal, request activities.ProposeRequest,
) {
	if change.Project == nil || len(r.log.Chain.Reviews) == 0 {
		return
	}
	latest := r.ReviewOf(change.Commit)
	request.Project, request.Tier, request.Review = *change.Project, about.Tier, *latest
	request.Review.Branch, request.Review.Commit = change.Branch, change.Commit
	request.Summary = r.summary(latest.ReviewerID)
	var tiers *activities.Tiers
	var written activities.ProposeResult
	// A forge can refuse for an hour. Meanwhile other chains may repair the services.
	err := r.sessions.Flush(ctx)
	if err == nil {
		err = r.log.StoreUnlessCancelled(ctx, "record the review of "+change.Branch, true)
	}
	if err != nil {
		workflow.GetLogger(ctx).Warn("the review is recorded later", "error", err)
	}
	writing := withProposal(ctx, "pull request for "+change.Branch)
	err = workflow.ExecuteActivity(writing, tiers.ProposeChange, request).Get(writing, &written)
	if err != nil {
		written.Problem = cmp.Or(RootMessage(err), "no worker answered")
	}
	latest.PullRequest = written.PullRequest
	if event := proposed(request, written); event != nil {
		r.log.Add(ctx, *event)
	}
}

// proposed returns the event about a pull request; nil if there is none to comment on.
func proposed(request activities.ProposeRequest, written activities.ProposeResult) *escalation.Event {
	branch := request.Review.Branch
	event := escalation.Event{Kind: escalation.EventReview, Severity: escalation.SeverityInfo}
	switch {
	case written.Problem != "" && request.Comment:
		event.Severity = escalation.SeverityWarning
		event.Message = fmt.Sprintf("the review of %s could not be added to a pull request: %s", branch,
			Clip(written.Problem))
	case written.Problem != "":
		event.Severity = escalation.SeverityWarning
		event.Message = fmt.Sprintf("%s is approved and pushed, and its pull request could not be written: %s",
			branch, Clip(written.Problem))
	case written.PullRequest == "":
		return nil
	case request.Comment:
		event.Message = fmt.Sprintf("the review of %s was added to the pull request %s", branch, written.PullRequest)
	default:
		event.Message = fmt.Sprintf("%s is proposed in the pull request %s", branch, written.PullRequest)
	}
	return &event
}

// summary returns the summary of a reviewer's verdict; "" if there is none.
func (r *Reviews) summary(reviewerID string) string {
	sessions := r.log.Chain.Sessions
	for i := len(sessions) - 1; i >= 0 && reviewerID != ""; i-- {
		if sessions[i].SessionID == reviewerID && sessions[i].Verdict != nil {
			return sessions[i].Verdict.Summary
		}
	}
	return ""
}
