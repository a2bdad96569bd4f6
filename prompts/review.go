package prompts

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// Review is the input for the prompt of a reviewer.
type Review struct {
	// Branch, Base and Commit name the change.
	Branch, Base, Commit string
	Files                []review.File
	// Message is the message of the commit. Since is what has changed since the previous review; empty if there was
	// none.
	Message, Patch, Since string
	// ForPerson lists why a person must look at the change.
	ForPerson []string
	// CheckOutput is what the checks of the repository have printed; empty if there are none.
	CheckOutput string
	Previews    []ReviewPreview
	// Problem, Request and Services describe the task of the author. Each can be empty.
	Problem, Request string
	Services         []string
	// Plan is the plan that the change belongs to; nil if it belongs to none.
	Plan *ReviewPlan
	// Guidance is what a person has said to the reviewer; it can be empty.
	Guidance string
	// Before holds the findings that are open, and Accepted those that people have accepted.
	Before, Accepted []string
	// Brief describes in Markdown what the reviewer may use.
	Brief string
}

// ReviewPlan names the plan, or the phase of a plan, that a reviewer judges.
type ReviewPlan struct {
	// File is the path of the plan. If Amend is set, the plan itself is reviewed, and otherwise the change for Phase.
	File  string
	Amend bool
	Phase review.Phase
}

// ReviewPreview is the output of a program that says what a change would do.
type ReviewPreview struct{ Command, Output string }

// Size describes the size of the change.
func (r Review) Size() string {
	return fmt.Sprintf("It has %s in %s.", plaintext.Count(review.Lines(r.Files), "changed line"),
		plaintext.Count(len(r.Files), "file"))
}

// Review returns the prompt of a reviewer. It contains nothing that the author said.
func (s *Set) Review(r Review) (string, error) { return join(r, s.builtIn.Lookup("review.md")) }

// ReviewContinued returns the prompt that continues an interrupted review of a commit. The conversation contains the
// rest. The guidance of a person can be empty.
func (s *Set) ReviewContinued(commit, guidance string) (string, error) {
	return join(struct{ Commit, Guidance string }{commit, strings.TrimSpace(guidance)},
		s.builtIn.Lookup("review-continued.md"))
}

// Reviewed returns the section of a reviewer's prompt that names the directory with the files of the change. If there
// is none, the section says why.
func (s *Set) Reviewed(directory, problem string) (string, error) {
	return join(struct{ Directory, Problem string }{directory, problem}, s.builtIn.Lookup("reviewed.md"))
}

// ReviewRepair returns the prompt that asks a reviewer for its verdict again. It contains the reason why the verdict is
// invalid.
func (s *Set) ReviewRepair(reason string) (string, error) {
	return join(struct{ Reason string }{reason}, s.builtIn.Lookup("review-repair.md"))
}

// Correction lists what an author must correct.
type Correction struct {
	Commit string
	// Findings holds the findings of a reviewer, one line each. CheckOutput is what failed checks have printed; empty
	// if a review has found something.
	Findings    []string
	CheckOutput string
	// Why says why the commit is not pushed, for a correction without findings and outputs.
	Why string
}
