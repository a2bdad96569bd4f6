package workflows

import (
	"encoding/json"
	"slices"

	"go.temporal.io/sdk/workflow"
)

// Carried is the state that a chain at a gate passes to its next run.
type Carried struct {
	carried

	// Step is the gate at which the chain waits.
	Step gateStep `json:"step"`
	// Proposed is the change of the chain; nil if it has committed nothing.
	Proposed *proposedChange `json:"proposed,omitempty"`
	Detached bool            `json:"detached,omitempty"`
	// Request is a person's pending request for a tier; nil if there is none.
	Request *EscalateSignal `json:"request,omitempty"`
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
		carried: c.carry(ctx), Step: at, Proposed: c.proposed, Detached: c.parent.detached, Request: c.requests.pending,
	}
	info := workflow.GetInfo(ctx)
	workflow.GetLogger(ctx).Info("the chain continues as new", "gate", c.gates.latest().ID,
		"events", info.GetCurrentHistoryLength(), "new_version", info.GetTargetWorkerDeploymentVersionChanged())
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{
		InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade,
	}, ChainWorkflow, input)
}

// chainRun returns the chain in the state in which its previous run ended.
func (c *Carried) chainRun(input ChainInput) *chainRun {
	chain := composeChain(input, c.restore())
	chain.parent.detached, chain.proposed, chain.requests.pending = c.Detached, c.Proposed, c.Request
	if gate := c.State.OpenGate(); gate != nil {
		chain.incidents.news = slices.Clone(gate.News)
	}
	return chain
}
