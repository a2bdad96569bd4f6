package plan

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// describePlanStart describes the beginning of the work on a plan.
func describePlanStart(state escalation.PlanState, plan review.Plan) string {
	what := "review"
	if state.Task == escalation.PlanRun {
		what = "run"
	}
	text := fmt.Sprintf("%s of the plan %s at %s begins: ", what, state.File, plaintext.Cut(state.Base, 12))
	if state.Task == escalation.PlanReviewed {
		state.Phases = nil
		for _, phase := range plan.Phases {
			state.Phases = append(state.Phases, escalation.PlanPhase{Number: phase.Number, Title: phase.Title})
		}
	}
	return text + describeChosen(state)
}

const (
	// maxPhaseTitle limits the title of a phase in a list, in characters. If the list is longer than maxChosen, it has
	// no titles.
	maxPhaseTitle, maxChosen = 40, 350
)

// describeChosen lists the phases of a plan, and which of them are not carried out.
func describeChosen(state escalation.PlanState) string {
	list := func(name func(escalation.PlanPhase) string) string {
		var chosen, skipped []string
		for _, phase := range state.Phases {
			if phase.Status == escalation.PhaseSkipped {
				skipped = append(skipped, name(phase))
			} else {
				chosen = append(chosen, name(phase))
			}
		}
		text := strings.Join(chosen, ", ")
		if len(skipped) > 0 {
			text += "; not " + strings.Join(skipped, ", ")
		}
		return text
	}
	text := list(func(phase escalation.PlanPhase) string {
		phase.Title = plaintext.Cut(phase.Title, maxPhaseTitle)
		return describePhase(phase)
	})
	if len(text) > maxChosen {
		text = "the phases " + list(func(phase escalation.PlanPhase) string { return phase.Number })
	}
	return text
}

// describePhase names a phase.
func describePhase(phase escalation.PlanPhase) string {
	text := "phase " + phase.Number
	if phase.Number == escalation.PlanItself {
		text = "the plan"
	}
	if phase.Title != "" {
		text += fmt.Sprintf(" (%s)", phase.Title)
	}
	return text
}

// describePhases says what became of the phases.
func describePhases(state escalation.PlanState) string {
	counts := map[escalation.PhaseStatus]int{}
	for _, phase := range state.Phases {
		counts[phase.Status]++
	}
	text := plaintext.Count(counts[escalation.PhaseApproved], "phase") + " approved"
	if state.Task == escalation.PlanReviewed {
		text = "the plan is amended and approved"
	}
	if accepted := counts[escalation.PhaseAccepted]; accepted > 0 {
		text += fmt.Sprintf(", %d accepted by people", accepted)
	}
	return text
}

// describePlan describes the plan for a pull request.
func describePlan(state escalation.PlanState) string {
	return fmt.Sprintf("The plan %s: %s.", state.File, describePhases(state))
}
