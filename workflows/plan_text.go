package workflows

import (
	"fmt"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// describePlanStart describes the beginning of the work on a plan.
func describePlanStart(state escalation.PlanState) string {
	what := "review"
	if state.Task == escalation.PlanRun {
		what = "run"
	}
	return fmt.Sprintf("%s of the plan %s at %s begins", what, state.File, plaintext.Cut(state.Base, 12))
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
