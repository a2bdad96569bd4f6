package chainclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/program"
	"github.com/claudeops/claudeops/workflows"
)

// answerTimeout limits the wait for the confirmation of an answer. A chain confirms an answer after recording the
// answer.
const answerTimeout = 30 * time.Second

// ErrNoGate is the error for a chain that does not wait for a person.
var ErrNoGate = errors.New("it does not wait at a gate; `starter gate` lists the chains that do")

// QueryGate returns the open gate of a chain. The argument patience limits how long it waits for the chain's answer. If
// the ID is unknown, the error is ErrNoSuchChain. If no gate is open, the error is ErrNoGate.
func QueryGate(ctx context.Context, c client.Client, patience time.Duration, id string) (*escalation.Gate, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := c.QueryWorkflow(ctx, id, "", workflows.GateQuery)
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return nil, ErrNoSuchChain
	}
	if err != nil {
		return nil, err
	}
	var gate *escalation.Gate
	if err := answer.Get(&gate); err != nil {
		return nil, err
	}
	if gate == nil {
		return nil, ErrNoGate
	}
	return gate, nil
}

// ResolveGate answers a gate. If the workflow refuses the answer, the error has the workflow's message and counts as
// misuse of the command.
func ResolveGate(ctx context.Context, c client.Client, id string, answer escalation.GateAnswer) (escalation.GateResolution, error) {
	var resolution escalation.GateResolution
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	update, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: workflows.ResolveGate, Args: []any{answer},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = update.Get(ctx, &resolution)
	}
	return resolution, refusal(err)
}

// refusal converts the error of an update to an error for people. It converts nil to nil.
func refusal(err error) error {
	_, cut := errors.AsType[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err)
	_, unknown := errors.AsType[*serviceerror.NotFound](err)
	_, refused := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case err == nil:
		return nil
	case cut:
		return fmt.Errorf("nobody confirmed the answer within %s; look again before you repeat it", answerTimeout)
	case unknown:
		return errors.New("it has ended, and needs no answer any more")
	case refused:
		return program.Misuse(console.PrintableError(RootCause(err)))
	}
	return err
}

// signalTimeout limits the wait until Temporal has accepted a signal.
const signalTimeout = 10 * time.Second

// SignalIncident sends a chain news about its incident. If the chain has ended, the error is ErrNoSuchChain.
func SignalIncident(ctx context.Context, c client.Client, chainID string, news workflows.IncidentSignal) error {
	ctx, cancel := context.WithTimeout(ctx, signalTimeout)
	defer cancel()
	err := c.SignalWorkflow(ctx, chainID, "", workflows.IncidentSignalName, news)
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return ErrNoSuchChain
	}
	return err
}
