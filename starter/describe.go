package main

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/workflows"
)

// errNoSuchChain is returned for an ID that neither Temporal nor the records know.
var errNoSuchChain = errors.New("no such chain")

// describeChain returns what Temporal itself knows of a chain. It fails for the ID of anything else.
func describeChain(ctx context.Context, c client.Client, id string) (*workflowpb.WorkflowExecutionInfo, error) {
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return nil, errNoSuchChain
	}
	if err != nil {
		return nil, err
	}
	chain := described.GetWorkflowExecutionInfo()
	if name := chain.GetType().GetName(); name != workflows.ChainWorkflow {
		return nil, fmt.Errorf("it is no chain, but a workflow of type %s", printable(name, 100))
	}
	return chain, nil
}

// isUnanswered reports whether a question to a workflow failed because nobody answered it in time.
func isUnanswered(err error) bool {
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	return late || errors.Is(err, context.DeadlineExceeded)
}

// whyNoAnswer makes a sentence of the error of a question to a chain: it may be no chain, it may have
// failed before it could be asked anything, or no worker is there.
func (a *app) whyNoAnswer(ctx context.Context, c client.Client, id string, err error) error {
	_, refused := errors.AsType[*serviceerror.QueryFailed](err)
	if !refused && !isUnanswered(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	chain, problem := describeChain(ctx, c, id)
	switch {
	case problem != nil:
		return problem
	case chain.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		failure := c.GetWorkflow(ctx, id, chain.GetExecution().GetRunId()).Get(ctx, nil)
		return fmt.Errorf("it failed: %w", rootCause(failure))
	case refused:
		return err
	default:
		return fmt.Errorf("no worker answered within %s; is one running on task queue %s?", a.patience, chain.GetTaskQueue())
	}
}
