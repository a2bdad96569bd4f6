package workflows

import (
	"encoding/json"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
)

// CarriedPlan is the state that the work on a plan passes to its next run.
type CarriedPlan struct {
	carried

	Step planStep `json:"step"`
}

// UnmarshalJSON ignores unknown fields, because a newer worker may have written the state and an older worker may read
// it. Unknown fields elsewhere in an input remain errors.
func (c *CarriedPlan) UnmarshalJSON(data []byte) error {
	type plain CarriedPlan // has no UnmarshalJSON, which would call itself
	return json.Unmarshal(data, (*plain)(c))
}

// isLong reports whether the work should continue as new between two turns, and would lose nothing by doing so.
func (p *planRun) isLong(ctx workflow.Context) bool { return p.gates.mayContinueAsNew(ctx) }

// continueAsNew returns the error that makes Temporal start a new run in the same state. It refuses answers that have arrived
// before a gate is open, and records the end of the latest session.
func (p *planRun) continueAsNew(ctx workflow.Context) error {
	if !p.at.AtGate {
		p.gates.receiveReplies(ctx)
		p.people.settle(ctx)
		if err := p.sessions.flush(ctx); err != nil {
			return err
		}
		if err := p.log.record(ctx, "record events", false); err != nil {
			return err
		}
		if !p.gates.mayContinueAsNew(ctx) { // something has arrived meanwhile
			return nil
		}
	}
	workflowType := PhaseExecutionWorkflow
	if p.task == escalation.PlanReviewed {
		workflowType = PlanReviewWorkflow
	}
	input := p.input
	input.Carried = &CarriedPlan{carried: p.carry(ctx), Step: p.at}
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{
		InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade,
	}, workflowType, input)
}
