package workflows_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/change/forge"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/workflows"
)

const pullRequest = "https://github.com/acme/infra/pull/1"

// atForge makes the changes of a world ones of a repository at a forge.
func (w *world) atForge() {
	commit := w.change
	w.change = func(session int) *activities.Change {
		change := commit(session)
		change.Project = &forge.Project{Program: forge.GitHub, Host: "github.com", Path: "acme/infra", Base: "main"}
		change.Message, change.CheckOutput = "web: the right port", "$ grep"
		change.Previews = []activities.Preview{{Command: "docker compose config", Output: "8080"}}
		return change
	}
}

// TestPullRequest checks that an approved change is pushed and then proposed, and what is said about it.
func TestPullRequest(t *testing.T) {
	t.Parallel()
	w := newReviewedWorld(t, escalation.ReviewRequired, repeated(2, concludes(escalation.VerdictResolved, 0.5))...)
	w.policy.Review.MaxFixes = 3
	w.atForge()
	w.review, _ = inTurn(t, finds(objection("wrong-port")), finds())
	people := w.listen()
	w.propose = func(activities.ProposeRequest) (activities.ProposeResult, error) {
		require.Len(t, w.pushed, 1, "the commit is pushed first")
		require.True(t, w.recorded[len(w.recorded)-1].Release, "a forge can take an hour, and other chains may repair")
		return activities.ProposeResult{PullRequest: pullRequest}, nil
	}
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
	require.Len(t, w.proposed, 1)
	done := result.Reviews[1]
	require.Equal(t, []string{"", pullRequest}, []string{result.Reviews[0].PullRequest, done.PullRequest})
	done.PullRequest = ""
	require.Equal(t, activities.ProposeRequest{
		Project: *w.change(3).Project, Tier: escalation.TierSafeRepair, Title: "web: the right port", Review: done, Summary: "read",
		Problem: "what it saw\n", CheckOutput: "$ grep", Previews: w.change(3).Previews,
	}, w.proposed[0])
	require.Contains(t, people.got[0].Text, "\nPull request: "+pullRequest)
	requireSaid(t, result.Events, escalation.SeverityInfo, "claudeops/x is proposed in the pull request "+pullRequest)
	requireRecorded(t, result.Events, w.events)
}

// requireSaid checks that a chain has one event about reviews that contains a text.
func requireSaid(t *testing.T, events []escalation.Event, severity escalation.Severity, text string) {
	t.Helper()
	var said []escalation.Event
	for _, event := range events {
		if event.Kind == escalation.EventReview && strings.Contains(event.Message, text) {
			said = append(said, event)
		}
	}
	require.Len(t, said, 1, "%q is not among %v", text, events)
	require.Equal(t, severity, said[0].Severity)
}

// TestPullRequestFails checks that a commit stays approved and pushed if nobody can propose it.
func TestPullRequestFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(activities.ProposeRequest) (activities.ProposeResult, error)
		says   string
		calls  int
	}{
		"refused": {func(activities.ProposeRequest) (activities.ProposeResult, error) {
			return activities.ProposeResult{Problem: "gh: Forbidden (HTTP 403)"}, nil
		}, "Forbidden", 1},
		"no host has the program": {func(activities.ProposeRequest) (activities.ProposeResult, error) {
			return activities.ProposeResult{}, temporal.NewApplicationError("this host does not have gh", activities.ErrorTypeAgent)
		}, "does not have gh", 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newReviewedWorld(t, escalation.ReviewRequired, concludes(escalation.VerdictResolved, 0.5))
			w.atForge()
			w.propose = c.answer
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome, result.Reason)
			require.Len(t, w.pushed, 1)
			require.Len(t, w.proposed, c.calls)
			done := result.Reviews[0]
			require.Equal(t, []any{true, "https://git.example.org/infra", ""}, []any{done.Approved, done.Pushed, done.PullRequest})
			requireSaid(t, result.Events, escalation.SeverityWarning, "is approved and pushed, and its pull request could not be written: ")
			requireSaid(t, result.Events, escalation.SeverityWarning, c.says)
			requireRecorded(t, result.Events, w.events)
		})
	}
}

// TestNoPullRequest checks when nothing is proposed.
func TestNoPullRequest(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"no forge":        func(w *world) { w.change = func(int) *activities.Change { c := *changed(2); return &c } },
		"the push failed": func(w *world) { w.pushProblem = "no route" },
		"not approved": func(w *world) {
			w.review = finds(review.Finding{Fingerprint: "a", Priority: review.P0, Action: review.HumanRequired, Text: "x"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newReviewedWorld(t, escalation.ReviewRequired, concludes(escalation.VerdictResolved, 0.5))
			w.policy.Gate.Timeout = 0
			w.atForge()
			change(w)
			_, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Empty(t, w.proposed)
		})
	}
}

// changed returns the change of a session in a repository without a forge.
func changed(session int) *activities.Change {
	return &activities.Change{
		Branch: "claudeops/x", Base: "b0", Commit: fmt.Sprint("c", session), Files: []review.File{{Path: "compose.yaml", Listed: true, Added: 1}},
		Checks: review.QualityPassed,
	}
}

// TestPullRequestOfAPerson checks that a pull request after an override says that a person has approved.
func TestPullRequestOfAPerson(t *testing.T) {
	t.Parallel()
	w := newReviewedWorld(t, escalation.ReviewRequired, concludes(escalation.VerdictResolved, 0.5))
	w.atForge()
	w.review = finds(review.Finding{Fingerprint: "a", Priority: review.P0, Action: review.HumanRequired, Text: "x"})
	w.gateAfter(t, time.Hour)
	w.answerAfter(2*time.Hour, said(escalation.GateOverride, "it is fine"))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeOverridden, result.Outcome)
	require.Len(t, w.proposed, 1)
	require.Equal(t, []any{true, false, escalation.TierSafeRepair},
		[]any{w.proposed[0].ByPerson, w.proposed[0].Review.Approved, w.proposed[0].Tier})
	require.Equal(t, pullRequest, result.Reviews[0].PullRequest)
}

// TestPullRequestOfAPlan checks that the phases of a plan are proposed together, at the end.
func TestPullRequestOfAPlan(t *testing.T) {
	t.Parallel()
	w := newPlanWorld(t)
	project := &forge.Project{Program: forge.GitLab, Host: "gitlab.com", Path: "acme/infra"}
	w.author = func(turn int, input activities.RunAuthorInput) activities.RunAuthorResult {
		result := w.commits(turn, input)
		result.Change.Project, result.Change.CheckOutput = project, fmt.Sprint("checks of c", turn)
		return result
	}
	result, err := w.run(workflows.PhaseExecutionWorkflow, workflows.PlanInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeApproved, result.Outcome, result.Reason)
	require.Len(t, w.proposed, 1)
	request := w.proposed[0]
	require.Equal(t, []any{*project, escalation.TierSafeRepair, result.Plan.Title, "c2", "claudeops/run", "checks of c2", false},
		[]any{request.Project, request.Tier, request.Title, request.Review.Commit, request.Review.Branch, request.CheckOutput, request.ByPerson})
	require.Equal(t, "The plan docs/plan.md: 2 phases approved.", request.Problem)
	require.Equal(t, result.Plan.Phases, request.Phases)
	for i, phase := range request.Phases {
		require.Equal(t, []any{fmt.Sprint(i + 1), escalation.PhaseApproved, "passed", "ready"}, []any{phase.Number, phase.Status, phase.Checks, phase.Verdict})
		require.InDelta(t, 0.6, phase.CostUSD, 1e-9)
	}
	require.Equal(t, pullRequest, result.Reviews[1].PullRequest)
	requireRecorded(t, result.Events, w.events)
}

// TestAdvisoryComment checks that an advisory review is added to the pull request that the author has opened.
func TestAdvisoryComment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer   activities.ProposeResult
		severity escalation.Severity
		says     string
	}{
		"added":  {activities.ProposeResult{PullRequest: pullRequest}, escalation.SeverityInfo, "was added to the pull request " + pullRequest},
		"failed": {activities.ProposeResult{Problem: "no login"}, escalation.SeverityWarning, "could not be added to a pull request: no login"},
		"none":   {activities.ProposeResult{}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newReviewedWorld(t, escalation.ReviewAdvisory, concludes(escalation.VerdictResolved, 0.5))
			w.atForge()
			w.review = finds(objection("wrong-port"))
			people := w.listen()
			w.propose = func(activities.ProposeRequest) (activities.ProposeResult, error) { return c.answer, nil }
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome)
			require.Empty(t, w.pushed, "an advisory review pushes nothing")
			require.Len(t, w.proposed, 1)
			require.Equal(t, []any{true, "not_ready", "read"}, []any{w.proposed[0].Comment, w.proposed[0].Review.Status, w.proposed[0].Summary})
			require.Equal(t, c.answer.PullRequest, result.Reviews[0].PullRequest)
			require.Equal(t, c.answer.PullRequest != "", strings.Contains(people.got[0].Text, "\nPull request: "+pullRequest))
			if c.says != "" {
				requireSaid(t, result.Events, c.severity, c.says)
			} else {
				require.NotContains(t, result.Events[len(result.Events)-2].Message, "pull request")
			}
			requireRecorded(t, result.Events, w.events)
		})
	}
}

// TestCancelledPullRequest cancels a chain while its pull request is written. Nothing else was left to do, so the chain
// ends as it would have.
func TestCancelledPullRequest(t *testing.T) {
	t.Parallel()
	for _, mode := range []escalation.ReviewMode{escalation.ReviewAdvisory, escalation.ReviewRequired} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			w := newReviewedWorld(t, mode, concludes(escalation.VerdictResolved, 0.5))
			w.atForge()
			w.propose = func(activities.ProposeRequest) (activities.ProposeResult, error) {
				if len(w.proposed) == 1 {
					w.env.RegisterDelayedCallback(w.env.CancelWorkflow, 0)
				}
				return activities.ProposeResult{}, temporal.NewApplicationError("busy", activities.ErrorTypeAgent)
			}
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome, "the work is done")
			require.Len(t, w.proposed, 1)
			require.True(t, result.Reviews[0].Approved)
			require.Equal(t, mode == escalation.ReviewRequired, result.Reviews[0].Pushed != "")
			requireSaid(t, result.Events, escalation.SeverityWarning, "canceled")
			requireRecorded(t, result.Events, w.events)
		})
	}
}
