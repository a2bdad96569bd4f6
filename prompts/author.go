package prompts

import (
	"strings"

	"github.com/claudeops/claudeops/internal/escalation/review"
)

// Authoring is the input for the prompts of an author.
type Authoring struct {
	// Plan is the path of the plan below the working directory, and Title its heading.
	Plan, Title string
	// Amend means that the author amends the plan. Otherwise it carries out Phase.
	Amend bool
	Phase review.Phase
	// Request is the request of the person who started the workflow, and Guidance what a person has said at a gate.
	Request, Guidance string
	// Gate says in a sentence how the gate before the session was closed; empty if there was none.
	Gate string
	// Refusal is the answer with which the model has refused the same task before; empty if it has not.
	Refusal string
	// Correction lists what the author must correct; nil if it has committed nothing yet.
	Correction *Correction
	// CutOff describes an earlier process of the same session that may have ended before it received its task; nil if
	// there was no such process.
	CutOff *Interruption
	// Brief describes in Markdown what the author may use.
	Brief string
}

// authorView is the data of the prompts of an author: that of the sections they share with those of tiers, and their
// own.
type authorView struct {
	view

	Plan, Title string
	Amend       bool
	Phase       review.Phase
	Refusal     string
}

func (a Authoring) view() authorView {
	return authorView{
		view: view{
			Request: strings.TrimSpace(a.Request), Guidance: strings.TrimSpace(a.Guidance), Correction: a.Correction,
			CutOff: a.CutOff, Brief: a.Brief, Gate: a.Gate,
		},
		Plan: a.Plan, Title: a.Title, Amend: a.Amend, Phase: a.Phase, Refusal: a.Refusal,
	}
}

// Author returns the whole prompt of an author.
func (s *Set) Author(a Authoring) (string, error) {
	return join(a.view(), s.builtIn.Lookup("author.md"), s.sections("cutoff.md", "request.md", "correction.md")...)
}

// AuthorCorrects returns the prompt with which an author corrects its change in the conversation in which it made it.
func (s *Set) AuthorCorrects(a Authoring) (string, error) {
	return join(a.view(), s.builtIn.Lookup("correction.md"), s.sections("cutoff.md", "request.md")...)
}

// AuthorRepair returns the prompt that asks an author for its report again. It contains the reason why the report is
// invalid.
func (s *Set) AuthorRepair(reason string) (string, error) {
	return join(struct{ Reason string }{reason}, s.builtIn.Lookup("author-repair.md"))
}
