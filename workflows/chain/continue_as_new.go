package chain

import (
	"encoding/json"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/workflows/parts"
)

// Carried is the state that a chain at a gate passes to its next run.
type Carried struct {
	parts.Carried

	// Step is the gate at which the chain waits.
	Step gateStep `json:"step"`
	// Proposed is the change of the chain; nil if it has committed nothing.
	Proposed *proposedChange `json:"proposed,omitempty"`
	Detached bool            `json:"detached,omitempty"`
	// Request is a person's pending request for a tier; nil if there is none.
	Request *parts.EscalateSignal `json:"request,omitempty"`
}

// UnmarshalJSON ignores unknown fields, because a newer worker may have written the state and an older worker may read
// it. Unknown fields elsewhere in an input remain errors.
func (c *Carried) UnmarshalJSON(data []byte) error {
	type plain Carried // has no UnmarshalJSON, which would call itself
	return json.Unmarshal(data, (*plain)(c))
}

// continueAsNew returns the error that makes Temporal start a new run of the chain at the same gate. It loses no
// signal, because the caller has received all signals, and continueAsNew does not block. If another signal arrives at
// this moment, Temporal repeats the workflow task with that signal.
//
// The new run begins in the version of the workers that is current at its start. If the workers have no versions, the
// option InitialVersioningBehavior has no effect.
func (c *chainRun) continueAsNew(ctx workflow.Context, at gateStep) error {
	input := c.input
	input.Carried = &Carried{
		Carried: c.Carry(ctx), Step: at, Proposed: c.proposed, Detached: c.parent.Detached, Request: c.Requests.Pending,
	}
	info := workflow.GetInfo(ctx)
	workflow.GetLogger(ctx).Info("the chain continues as new", "gate", c.Gates.Latest().ID,
		"events", info.GetCurrentHistoryLength(), "new_version", info.GetTargetWorkerDeploymentVersionChanged())
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{
		InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade,
	}, Workflow, input)
}

// chainRun returns the chain in the state in which its previous run ended.
func (c *Carried) chainRun(input Input) *chainRun {
	chain := composeChain(input, c.Restore())
	chain.parent.Detached, chain.proposed, chain.Requests.Pending = c.Detached, c.Proposed, c.Request
	if gate := c.State.OpenGate(); gate != nil {
		chain.Incidents.News = slices.Clone(gate.News)
	}
	return chain
}
