package workflows

import (
	"go.temporal.io/sdk/workflow"
)

// WaitingSignal tells the workflow that started a chain that the chain waits for long, and need not be waited for.
const WaitingSignal = "waiting"

// parentLink connects a chain with the workflow that started it.
type parentLink struct {
	chainID string
	// detached says that the parent knows that it need not wait.
	detached bool
}

// detach lets the parent end without waiting for this workflow. Call it before a wait for a person, or for anything else that
// can take longer than a cycle of a schedule: otherwise every later cycle would be skipped. It signals once, and does nothing
// where there is no parent.
func (p *parentLink) detach(ctx workflow.Context) {
	parent := workflow.GetInfo(ctx).ParentWorkflowExecution
	if parent == nil || p.detached {
		return
	}
	p.detached = true
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	err := workflow.SignalExternalWorkflow(disconnected, parent.ID, parent.RunID, WaitingSignal, p.chainID).Get(disconnected, nil)
	if err != nil {
		workflow.GetLogger(ctx).Info("nobody waits for this chain", "parent", parent.ID, "error", err)
	}
}

// relay detaches this workflow as soon as one that it has started itself signals that it waits for long.
func (p *parentLink) relay(ctx workflow.Context) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, WaitingSignal).Receive(ctx, nil)
		p.detach(ctx)
	})
}
