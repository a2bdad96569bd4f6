package activities

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/change/forge"
	"github.com/claudeops/claudeops/internal/escalation"
)

// Proposer writes pull requests as the agents' user.
type Proposer interface {
	// Propose opens or updates a pull request, or adds a comment to it. A repeated call has no further effect. If it is
	// refused, the result has a problem. An error means that it may succeed later or on another host.
	Propose(ctx context.Context, proposal Proposal) (ProposeResult, error)
}

// Proposal is the text of a pull request.
type Proposal struct {
	Project forge.Project
	// Tier is the tier of the author. Its policy must grant the project's program.
	Tier        escalation.Tier
	Branch      string
	Title, Body string
	// Comment reports that Body is a comment on the pull request that the author has opened. It is added unless one
	// with the line Marker is there.
	Comment bool
	Marker  string
}

// ProposeRequest describes a reviewed change whose commit is on its branch at the forge.
type ProposeRequest struct {
	Project forge.Project   `json:"project"`
	Tier    escalation.Tier `json:"tier"`
	// Title is the title of a new pull request; empty for one that names the chain.
	Title string `json:"title,omitempty"`
	// Review is the latest review of the change. Summary is the reviewer's; empty if there is none.
	Review  escalation.Review `json:"review"`
	Summary string            `json:"summary,omitempty"`
	// ByPerson reports that a person has approved the change at a gate.
	ByPerson bool `json:"by_person,omitempty"`
	// Comment reports that the author has proposed the change itself, and only the review is added.
	Comment bool `json:"comment,omitempty"`
	// Problem is what the chain found before the author began; empty if that is not known.
	Problem string `json:"problem,omitempty"`
	// Phases are the phases of the plan that the change carries out; empty if there is no plan. Review is that of the
	// last one.
	Phases      []escalation.PlanPhase `json:"phases,omitempty"`
	CheckOutput string                 `json:"check_output,omitempty"`
	Previews    []Preview              `json:"previews,omitempty"`
}

// ProposeResult says where a change is proposed.
type ProposeResult struct {
	// PullRequest is the address of the pull request; empty if there is none.
	PullRequest string `json:"pull_request,omitempty"`
	// Problem says why a pull request could not be written; empty if it could, or if there was none to comment on.
	Problem string `json:"problem,omitempty"`
}

// ProposeChange proposes a change in a pull request, or adds its review to the pull request that its author has opened.
// Another attempt repeats nothing, also on another host.
func (t *Tiers) ProposeChange(ctx context.Context, request ProposeRequest) (ProposeResult, error) {
	done := beat(ctx)
	defer done()
	about := t.describe(activity.GetInfo(ctx).WorkflowExecution.ID, request)
	title := request.Title
	if title == "" {
		title = "Change of " + about.ChainID
	}
	result, err := t.Proposer.Propose(ctx, Proposal{
		Project: request.Project, Tier: request.Tier, Branch: request.Review.Branch, Title: forge.Title(title),
		Body: about.Markdown(), Comment: request.Comment, Marker: about.Marker(),
	})
	if err != nil {
		options := temporal.ApplicationErrorOptions{}
		if _, limited := errors.AsType[*forge.LimitedError](err); limited {
			options.NextRetryDelay = afterForgeLimit
		}
		return ProposeResult{}, temporal.NewApplicationErrorWithOptions(err.Error(), ErrorTypeAgent, options)
	}
	return result, nil
}

// afterForgeLimit is the time until a forge that has limited a login is asked again. GitHub renews its limit each hour,
// and asks for at least a minute after others
// (docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
const afterForgeLimit = 8 * time.Minute

// describe returns what a pull request says about a change.
func (t *Tiers) describe(chainID string, request ProposeRequest) forge.Description {
	done := request.Review
	about := forge.Description{
		ChainID: chainID, ReviewID: done.ReviewerID, Branch: done.Branch, Commit: done.Commit, Files: done.Files,
		Lines: done.Lines, Problem: request.Problem, Decision: decisionOn(request), Status: done.Status,
		Summary: request.Summary, Findings: done.Findings, Checks: done.Checks, CheckOutput: request.CheckOutput,
	}
	if t.PagesURL != "" {
		about.Link = strings.TrimSuffix(t.PagesURL, "/") + "/chains/" + url.PathEscape(chainID)
	}
	if done.Phase != escalation.PlanItself {
		about.Phase = done.Phase
	}
	for _, phase := range request.Phases {
		about.Phases = append(about.Phases, phase.Describe())
	}
	for _, preview := range request.Previews {
		about.Previews = append(about.Previews, forge.Preview(preview))
	}
	return about
}

// decisionOn says what was decided about a change.
func decisionOn(request ProposeRequest) string {
	done := request.Review
	switch {
	case done.Approved:
		return fmt.Sprintf("Approved by rule %s: %s.", done.Rule, done.Reason)
	case request.ByPerson:
		return fmt.Sprintf("A person has approved the commit at a gate. The review had not, by rule %s: %s.",
			done.Rule, done.Reason)
	}
	return fmt.Sprintf("Not approved, by rule %s: %s.", done.Rule, done.Reason)
}
