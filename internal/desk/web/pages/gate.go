package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// gateForm is an open gate with the form that answers it.
type gateForm struct {
	ChainID  string
	Gate     escalation.Gate
	Services []string
	// Plan and Phase name the plan and the phase of the gate; empty if it has none, or if nobody has asked.
	Plan, Phase string
	// Review is the review because of which the gate is open; nil if there is none, or if nobody has asked.
	Review *escalation.Review
	// Draft is the answer that was refused; nil if there is none.
	Draft *draft
	// Back is the path of the page that follows the answer.
	Back string
}

// Heading names what the gate is about.
func (f gateForm) Heading() string {
	switch {
	case f.Gate.Phase == escalation.PlanItself:
		return cmp.Or(f.Plan, f.Gate.Plan, "A plan")
	case f.Gate.Phase != "":
		return cmp.Or(f.Plan, f.Gate.Plan, "A plan") + ", " + cmp.Or(f.Phase, operations.GatePlace(f.Gate))
	case len(f.Services) > 0:
		return names(f.Services)
	}
	return "All services"
}

// Severity returns the severity of what the gate is about.
func (f gateForm) Severity() escalation.Severity { return f.Gate.Severity() }

// Headline says in a sentence what is wrong.
func (f gateForm) Headline() string { return f.Gate.Headline() }

// of returns the form with what the chain knows about the gate.
func (f gateForm) of(chain escalation.Chain) gateForm {
	if plan := chain.Plan; plan != nil {
		f.Plan = operations.PlanTitle(plan)
		if phase := plan.Current(); phase != nil && phase.Title != "" {
			f.Phase = fmt.Sprintf("phase %s (%s)", phase.Number, phase.Title)
		}
	}
	if f.Gate.Rule == escalation.RuleReview && len(chain.Reviews) > 0 {
		f.Review = &chain.Reviews[len(chain.Reviews)-1]
	}
	return f
}

// draft is an answer that was refused, and why.
type draft struct {
	Action   escalation.GateAction
	Guidance string
	Problem  string
}

// answerGate answers the gate of one chain. The answer names the gate that the person saw, so that it cannot answer
// another.
func (p *Pages) answerGate(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	answer, err := answerOf(r, r.PostFormValue("gate_id"))
	if err != nil {
		return err
	}
	resolution, err := p.gates.Answer(r.Context(), id, answer)
	if kind := operations.KindOf(err); err != nil && (kind == operations.KindInvalid ||
		kind == operations.KindConflict) {
		return p.writeChain(w, r, id, &draft{answer.Action, answer.Guidance, err.Error()})
	}
	if err != nil {
		return fmt.Errorf("chain %s: %w", id, err)
	}
	return done(w, r, backTo(r, "/chains/"+id), flash{Text: "Answered: " + resolution.Next + "."})
}

// answerOf reads an answer from a form.
func answerOf(r *http.Request, gateID string) (escalation.GateAnswer, error) {
	person, _ := access.PersonOf(r.Context())
	answer := escalation.GateAnswer{
		GateID: gateID, Action: escalation.GateAction(r.PostFormValue("action")), Actor: person.Name, Verified: true,
		Guidance: strings.TrimSpace(strings.ReplaceAll(r.PostFormValue("guidance"), "\r\n", "\n")),
		Force:    r.PostFormValue("force") != "",
	}
	return answer, operations.Invalid(answer.Validate())
}

// answerGates gives the gates that were ticked the same answer.
func (p *Pages) answerGates(w http.ResponseWriter, r *http.Request) error {
	return p.each(w, r, "gate", "answered", func(ticked string) error {
		gateID, chainID, _ := strings.Cut(ticked, " ")
		answer, err := answerOf(r, gateID)
		if err == nil {
			_, err = p.gates.Answer(r.Context(), chainID, answer)
		}
		if err != nil {
			return fmt.Errorf("chain %s: %w", chainID, err)
		}
		return nil
	})
}

// maxTicked limits how many things one form changes.
const maxTicked = 200

// each calls act for everything that was ticked in a form, and redirects to a page that says how often it succeeded.
// The word done says what was done to a thing.
func (p *Pages) each(w http.ResponseWriter, r *http.Request, thing, did string, act func(ticked string) error) error {
	if err := r.ParseForm(); err != nil {
		return operations.Invalid(fmt.Errorf("the form cannot be read: %w", err))
	}
	ticked := r.PostForm["ticked"]
	back := backTo(r, "/")
	if len(ticked) == 0 || len(ticked) > maxTicked {
		return done(w, r, back, flash{fmt.Sprintf("Nothing was changed: tick at least one %s, and at most %d.", thing,
			maxTicked), true})
	}
	var problems []string
	for _, one := range ticked {
		if err := act(one); err != nil {
			problems = append(problems, err.Error())
		}
	}
	said := flash{
		Text: fmt.Sprintf("%s %s.", plaintext.Count(len(ticked)-len(problems), thing), did),
		Bad:  len(problems) > 0,
	}
	if len(problems) > 0 {
		said.Text += fmt.Sprintf(" %d refused: %s.", len(problems), strings.Join(problems, "; "))
	}
	return done(w, r, back, said)
}
