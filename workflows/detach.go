package workflows

import (
	"go.temporal.io/sdk/workflow"
)

// WaitingSignal is the signal from a chain to the workflow that started it. It says that the chain waits for a long
// time and that the parent need not wait for it.
const WaitingSignal = "waiting"

// parentLink connects a chain with the workflow that started it.
type parentLink struct {
	chainID string
	// detached reports whether the parent was signalled.
	detached bool
	// waiting has the IDs of the chains started by this one that have signalled that they wait for long.
	waiting map[string]bool
}

// detach signals the parent that it need not wait for this workflow. Call it before a wait for a person, or before any
// other wait that can take longer than the interval of a schedule. Otherwise every later cycle would be skipped. detach
// signals once, and does nothing if there is no parent.
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
