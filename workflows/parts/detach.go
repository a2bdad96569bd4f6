package parts

import (
	"go.temporal.io/sdk/workflow"
)

// WaitingSignal is a signal from a chain to the workflow that started the chain, its parent. It means that the chain
// waits for a long time, and that the parent need not wait for the chain any more.
const WaitingSignal = "waiting"

// ParentLink connects a chain with the workflow that started it.
type ParentLink struct {
	ChainID string
	// detached reports whether this workflow has sent WaitingSignal to its parent.
	Detached bool
	// waiting holds the IDs of the child chains that have sent WaitingSignal.
	Waiting map[string]bool
}

// Detach sends WaitingSignal to the parent workflow. Call Detach before a wait for a person, and before any other
// wait that can take longer than the interval of a schedule. If the parent is a cycle that keeps waiting, Temporal
// skips all later cycles of the schedule. Only the first call sends a signal. If there is no parent, Detach does
// nothing.
func (p *ParentLink) Detach(ctx workflow.Context) {
	parent := workflow.GetInfo(ctx).ParentWorkflowExecution
	if parent == nil || p.Detached {
		return
	}
	p.Detached = true
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	err := workflow.SignalExternalWorkflow(disconnected, parent.ID, parent.RunID, WaitingSignal,
		p.ChainID).Get(disconnected, nil)
	if err != nil {
		workflow.GetLogger(ctx).Info("nobody waits for this chain", "parent", parent.ID, "error", err)
	}
}

// Relay receives WaitingSignal from child chains. At the first signal, it also detaches this chain.
func (p *ParentLink) Relay(ctx workflow.Context) {
	p.Waiting = map[string]bool{}
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var chainID string
			workflow.GetSignalChannel(ctx, WaitingSignal).Receive(ctx, &chainID)
			p.Waiting[chainID] = true
			p.Detach(ctx)
		}
	})
}
