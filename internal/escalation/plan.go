package escalation

import (
	"strings"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// PlanTask says what a workflow does with a plan.
type PlanTask string

// The tasks.
const (
	PlanReviewed PlanTask = "review" // a reviewer reads the plan, and an author amends it
	PlanRun      PlanTask = "run"    // an author carries out its phases, and a reviewer reads each
)

// PlanState describes how far a workflow is with a plan. It is a part of the visible state of PlanReview and
// PhaseExecution.
type PlanState struct {
	Task PlanTask `json:"task"`
	// File is the path of the plan in its repository, and Title its heading.
	File  string `json:"file"`
	Title string `json:"title,omitempty"`
	// Repository is the last element of the repository's path; empty for the default directory of the workers.
	Repository string `json:"repository,omitempty"`
	// Base is the commit on which the work is based. Branch is the branch of its worktree, and Commit the latest
	// approved commit; both are empty before there is one.
	Base   string `json:"base,omitempty"`
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit,omitempty"`
	// Phase is the number of the phase that is worked on, and State the state of its loop, such as execute or review.
	// Both are empty before the first phase and after the last one.
	Phase string `json:"phase,omitempty"`
	State string `json:"state,omitempty"`
	// Phases lists the phases in the order of the plan. A PlanReview has one, which stands for the whole plan.
	Phases []PlanPhase `json:"phases"`
	// Pushed says where the approved commits were pushed; empty if they were not. PullRequest is the address of the
	// pull request; empty if there is none.
	Pushed      string `json:"pushed,omitempty"`
	PullRequest string `json:"pull_request,omitempty"`
	// NoRemote reports that the repository has no remote origin, so nothing is pushed.
	NoRemote bool `json:"no_remote,omitempty"`
}

// Warning says what whoever starts the work on a plan should know; empty if nothing.
func (p *PlanState) Warning() string {
	if p.NoRemote {
		return "The repository has no remote origin: what is approved is not pushed, and stays on a branch in the " +
			"repository of its host."
	}
	return ""
}

// PlanPhase describes the work on one phase.
type PlanPhase struct {
	// Number is the phase's number in the plan, such as 2 or 2.1; PlanItself for the plan itself.
	Number string      `json:"number"`
	Title  string      `json:"title,omitempty"`
	Status PhaseStatus `json:"status"`
	// Commit is the approved commit of the phase; empty if there is none.
	Commit string `json:"commit,omitempty"`
	// Turns counts the author's sessions, and Reviews the reviewer's.
	Turns   int `json:"turns,omitempty"`
	Reviews int `json:"reviews,omitempty"`
	// Checks is the result of the repository's checks in the latest review, and Verdict the reviewer's conclusion
	// there. Each is empty if that review has none.
	Checks  string `json:"checks,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	// Cost adds up all sessions of the phase.
	Cost
	ReviewTotals
}

// ReviewCostText returns the cost of the reviews as text.
func (p PlanPhase) ReviewCostText() string {
	return plaintext.Cost(p.ReviewCostUSD, p.ReviewCostEstimated)
}

// PlanItself is the number of the only phase of a PlanReview.
const PlanItself = "plan"

// PhaseStatus says how far a phase is.
type PhaseStatus string

// The statuses.
const (
	PhaseWaiting  PhaseStatus = "waiting"  // its turn has not come
	PhaseSkipped  PhaseStatus = "skipped"  // it was done before the work began, or nobody asked for it
	PhaseRunning  PhaseStatus = "running"  // it is worked on, or waits at a gate
	PhaseApproved PhaseStatus = "approved" // the reviewer has approved its commit
	PhaseAccepted PhaseStatus = "accepted" // a person has approved its commit
)

// Add counts the session of a phase that has ended.
func (p *PlanState) Add(session Session) {
	phase := p.Current()
	if phase == nil || session.Phase != phase.Number {
		return
	}
	phase.Cost = phase.Cost.Plus(session.Cost)
	if session.Purpose == PurposeReview {
		phase.Reviews++
		cost := ReviewTotals{ReviewCostUSD: session.CostUSD, ReviewCostEstimated: session.CostEstimated}
		phase.ReviewTotals = phase.ReviewTotals.Plus(cost)
		return
	}
	phase.Turns++
}

// Current returns the phase that is worked on; nil if there is none.
func (p *PlanState) Current() *PlanPhase {
	for i := range p.Phases {
		if p.Phase != "" && p.Phases[i].Number == p.Phase {
			return &p.Phases[i]
		}
	}
	return nil
}

// Name returns the number and the title of the phase.
func (p PlanPhase) Name() string {
	if p.Number == PlanItself {
		return "the plan"
	}
	return strings.TrimSpace(p.Number + " " + p.Title)
}

// Judgement says what the latest review of the phase and the checks have found, such as "verdict ready, checks passed";
// empty if there was no review.
func (p PlanPhase) Judgement() string { return judgement(p.Verdict, p.Checks) }

// maxPhaseName limits the name of a phase in its description, in characters.
const maxPhaseName = 80

// Describe describes the phase in a line: what became of it, what its latest review and the checks have found, and its
// cost.
func (p PlanPhase) Describe() string {
	parts := []string{string(p.Status)}
	if p.Status == PhaseAccepted {
		parts[0] += " by a person"
	}
	if judged := p.Judgement(); judged != "" {
		parts = append(parts, judged)
	}
	if p.Turns+p.Reviews > 0 {
		parts = append(parts, p.CostText())
	}
	return plaintext.Cut(p.Name(), maxPhaseName) + ": " + strings.Join(parts, ", ")
}

// Finished reports whether the phase needs no further work.
func (p PlanPhase) Finished() bool { return p.Status != PhaseWaiting && p.Status != PhaseRunning }
