package parts

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// Push pushes an approved commit, and adds to the latest review where it was pushed. If the repository is at a forge,
// Push also opens a pull request.
func (r *Reviews) Push(
	ctx workflow.Context, loop review.Loop, change activities.Change, about Proposal,
) (review.Loop, review.Decision) {
	pushed := r.tryPush(ctx, activities.PushRequest{
		Directory: r.sessions.Directory, Branch: change.Branch, Commit: loop.Commit, Base: change.Fork,
		Pack: change.Pack,
	})
	after, decision := loop.AfterPush(pushed.Problem)
	r.remember(change, loop.Commit, about.Approved)
	latest := r.ReviewOf(loop.Commit)
	event := escalation.Event{
		Kind: escalation.EventReview, Message: fmt.Sprintf("%s, to %s of %s", decision.Reason, change.Branch,
			pushed.Remote),
	}
	switch {
	case pushed.NoRemote:
		event.Severity, event.Message = escalation.SeverityWarning, fmt.Sprintf(
			"%s is approved and stays on %s: the repository has no remote origin", plaintext.Cut(loop.Commit, 12),
			change.Branch)
	case pushed.Problem != "":
		event.Severity, event.Message = escalation.SeverityWarning, decision.Reason
	default:
		latest.Pushed = pushed.Remote
	}
	r.log.Add(ctx, event)
	if latest.Pushed != "" {
		r.propose(ctx, change, about, !latest.Approved)
	}
	return after, decision
}

// ReviewOf returns the latest review of a commit, or the latest of all if that one has none.
func (r *Reviews) ReviewOf(commit string) *escalation.Review {
	all := r.log.Chain.Reviews
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Commit == commit {
			return &all[i]
		}
	}
	return &all[len(all)-1]
}

// remember adds a review for a commit that has none in the visible state: a person has accepted it, or later reviews
// have taken the place of its own.
func (r *Reviews) remember(change activities.Change, commit string, approved bool) {
	all := &r.log.Chain.Reviews
	if slices.ContainsFunc(*all, func(done escalation.Review) bool { return done.Commit == commit }) {
		return
	}
	done := escalation.Review{
		Branch: change.Branch, Base: change.Base, Commit: commit, Files: len(change.Files),
		Lines: review.Lines(change.Files), Checks: string(change.Checks), Rule: string(review.RulePersonDecided),
		Reason: "a person has accepted it without a review",
	}
	if approved {
		done.Rule, done.Reason, done.Approved = string(review.RuleReviewed), "a reviewer has approved it", true
	}
	*all = append(*all, done)
	*all = (*all)[max(0, len(*all)-escalation.MaxReviews):]
}

// pushPauses are the times between the attempts of a push: a remote can be away for a moment.
var pushPauses = []time.Duration{20 * time.Second, 2 * time.Minute}

// tryPush pushes a commit. If the remote does not take it, tryPush tries it again before a person is asked.
func (r *Reviews) tryPush(ctx workflow.Context, request activities.PushRequest) activities.PushResult {
	var tiers *activities.Tiers
	for attempt := 0; ; attempt++ {
		var pushed activities.PushResult
		pushing := WithPush(ctx, "push "+request.Branch)
		err := workflow.ExecuteActivity(pushing, tiers.PushChange, request).Get(pushing, &pushed)
		if err != nil {
			pushed.Problem = cmp.Or(RootMessage(err), "no worker answered")
		}
		if pushed.Problem == "" || pushed.Final || attempt == len(pushPauses) ||
			workflow.Sleep(ctx, pushPauses[attempt]) != nil {
			return pushed
		}
	}
}
