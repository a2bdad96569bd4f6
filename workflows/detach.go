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
	// waiting has the IDs of the chains started by this one that have signalled that they wait for long.
	waiting map[string]bool
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

// relay notes which of the chains started by this one signal that they wait for long. It detaches this chain with the first.
func (p *parentLink) relay(ctx workflow.Context) {
	p.waiting = map[string]bool{}
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var chainID string
			workflow.GetSignalChannel(ctx, WaitingSignal).Receive(ctx, &chainID)
			p.waiting[chainID] = true
			p.detach(ctx)
		}
	})
}
