package workflows

import (
	"go.temporal.io/sdk/workflow"
)

// WaitingSignal tells whoever started a chain that it waits for long, and need not be waited for.
const WaitingSignal = "waiting"

// detach lets whoever started the chain go on without it: call it before a wait for a person,
// or for anything else that can take longer than a cycle of a schedule. Without it a chain
// that waits for days would have every later cycle skipped. It is told once; a chain that
// nobody started, or whose starter is gone, has nobody to tell.
func (c *chainRun) detach(ctx workflow.Context) {
	starter := workflow.GetInfo(ctx).ParentWorkflowExecution
	if starter == nil || c.detached {
		return
	}
	c.detached = true
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	err := workflow.SignalExternalWorkflow(disconnected, starter.ID, starter.RunID, WaitingSignal, c.state.ID).Get(disconnected, nil)
	if err != nil {
		workflow.GetLogger(ctx).Info("nobody waits for this chain", "starter", starter.ID, "error", err)
	}
}

// relayWaiting detaches the chain when a chain that it has started itself waits for long.
func (c *chainRun) relayWaiting(ctx workflow.Context) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, WaitingSignal).Receive(ctx, nil)
		c.detach(ctx)
	})
}
