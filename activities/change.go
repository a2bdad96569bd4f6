package activities

import (
	"github.com/claudeops/claudeops/internal/change/forge"
	"github.com/claudeops/claudeops/internal/escalation/review"
)

// Change describes the commits of a session in its worktree, as a reviewer sees them. Secrets in it are masked.
type Change struct {
	// Branch is the branch of the worktree, and Base the commit on which the change is based. Commit is the commit of
	// the supervisor with what the worktree has committed since: it is what is reviewed, and what is pushed.
	Branch string `json:"branch"`
	Base   string `json:"base"`
	Commit string `json:"commit"`
	// Message is the message of Commit.
	Message string `json:"message,omitempty"`
	// Tree is the hash of the files of Commit.
	Tree string `json:"tree,omitempty"`
	// Within is the directory of the chain in its repository; "." for all of it.
	Within string        `json:"within,omitempty"`
	Files  []review.File `json:"files,omitempty"`
	// Patch is the change in git's format, and Since what has changed since the previous review; empty if there was
	// none, or if this host does not have its commit.
	Patch string `json:"patch,omitempty"`
	Since string `json:"since,omitempty"`
	// Doubts lists why only a person may approve the change, besides what its files say.
	Doubts []string `json:"doubts,omitempty"`
	// Checks is the result of the checks of the repository, and CheckOutput what they printed.
	Checks      review.QualityResult `json:"checks,omitempty"`
	CheckOutput string               `json:"check_output,omitempty"`
	Previews    []Preview            `json:"previews,omitempty"`
	// Plan is the plan in Commit; nil if nobody asked for it, or PlanProblem says why it cannot be read.
	Plan        *review.Plan `json:"plan,omitempty"`
	PlanProblem string       `json:"plan_problem,omitempty"`
	// Fork is the commit on which the whole branch is based, and Pack contains the commits since then for other hosts;
	// empty if nobody asked for them. Both are empty if a commit contains a secret.
	Fork string `json:"fork,omitempty"`
	Pack []byte `json:"pack,omitempty"`
	// Project is the repository in which a pull request can propose the change; nil if there is none, or the policy
	// grants the author no program for it.
	Project *forge.Project `json:"project,omitempty"`
	// NoRemote reports that the repository has no remote origin, so the change cannot be pushed.
	NoRemote bool `json:"no_remote,omitempty"`
	// Problem says why the change could not be looked at; empty if it could.
	Problem string `json:"problem,omitempty"`
}

// ToShow returns what a review needs of the change.
func (c Change) ToShow() Change {
	c.Plan = nil
	return c
}

// Checkpoint is a commit of a run, with what a host needs to have it that did not make it.
type Checkpoint struct {
	// Commit is the commit, and Base a commit before it that every host has.
	Commit string `json:"commit"`
	Base   string `json:"base"`
	// Pack contains the commits between the two in git's format; empty if only the host that made them has them.
	Pack []byte `json:"pack,omitempty"`
}

// Checkpoint returns the commit of the change with what other hosts need to have it.
func (c Change) Checkpoint() Checkpoint {
	return Checkpoint{Commit: c.Commit, Base: c.Fork, Pack: c.Pack}
}

// Correction lists what an author must correct.
type Correction struct {
	Commit string `json:"commit"`
	// Findings holds the findings of a reviewer. CheckOutput is what failed checks have printed; empty if a review has
	// found something.
	Findings    []review.Finding `json:"findings,omitempty"`
	CheckOutput string           `json:"check_output,omitempty"`
	// Why says why the commit is not pushed. The prompt has it if there are neither findings nor outputs.
	Why string `json:"why,omitempty"`
}

// Preview is the output of a program that says what a change would do.
type Preview struct {
	Command string `json:"command"`
	Output  string `json:"output"`
}
