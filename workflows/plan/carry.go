package plan

import (
	"encoding/json"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows/parts"
)

// Carried is the state that the work on a plan passes to its next run.
type Carried struct {
	parts.Carried

	Step planStep `json:"step"`
}

// UnmarshalJSON ignores unknown fields, because a newer worker may have written the state and an older worker may read
// it. Unknown fields elsewhere in an input remain errors.
func (c *Carried) UnmarshalJSON(data []byte) error {
	type plain Carried // has no UnmarshalJSON, which would call itself
	return json.Unmarshal(data, (*plain)(c))
}

// isLong reports whether the work should continue as new between two turns, and would lose nothing by doing so.
func (p *planRun) isLong(ctx workflow.Context) bool { return p.Gates.MayContinueAsNew(ctx) }

// continueAsNew returns the error that makes Temporal start a new run in the same state. It refuses answers that have
// arrived before a gate is open, and records the end of the latest session.
func (p *planRun) continueAsNew(ctx workflow.Context) error {
	if !p.at.AtGate {
		p.Gates.ReceiveReplies(ctx)
		p.People.Settle(ctx)
		if err := p.Sessions.Flush(ctx); err != nil {
			return err
		}
		if err := p.Log.Record(ctx, "record events", false); err != nil {
			return err
		}
		if !p.Gates.MayContinueAsNew(ctx) { // something has arrived meanwhile
			return nil
		}
	}
	workflowType := PhaseExecutionWorkflow
	if p.task == escalation.PlanReviewed {
		workflowType = ReviewWorkflow
	}
	input := p.input
	input.Carried = &Carried{Carried: p.Carry(ctx), Step: p.at}
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{
		InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade,
	}, workflowType, input)
}
