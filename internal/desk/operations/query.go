package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// ErrNoSuchChain is the error for an ID that exists neither in Temporal nor in the records.
var ErrNoSuchChain = withKind(KindNotFound, errors.New("no such chain; `claudeops chains` lists them"))

// Query asks the workflow of a chain for the chain's state.
func Query(ctx context.Context, c client.Client, id, runID string) (escalation.Chain, error) {
	var chain escalation.Chain
	answer, err := c.QueryWorkflow(ctx, id, runID, workflows.ChainQuery)
	if err != nil {
		return chain, err
	}
	err = answer.Get(&chain)
	return chain, err
}

// Describe returns Temporal's description of a chain. If the workflow with this ID has another type, Describe returns
// an error.
func Describe(ctx context.Context, c client.Client, id string) (*workflowpb.WorkflowExecutionInfo, error) {
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return nil, ErrNoSuchChain
	}
	if err != nil {
		return nil, err
	}
	chain := described.GetWorkflowExecutionInfo()
	if name := chain.GetType().GetName(); !slices.Contains(workflows.ChainWorkflows(), name) {
		return nil, fmt.Errorf("it is no chain, but a workflow of type %s", line(name, 100))
	}
	return chain, nil
}

// IsUnanswered reports whether a query failed because no worker answered in time.
func IsUnanswered(err error) bool {
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	return late || errors.Is(err, context.DeadlineExceeded)
}

// ExplainQueryError explains why a query failed. It distinguishes three reasons: there is no such chain, the chain
// failed before it could answer, or no worker answered in time. The argument patience is the time limit of the query.
func ExplainQueryError(ctx context.Context, c client.Client, patience time.Duration, id string, err error) error {
	_, refused := errors.AsType[*serviceerror.QueryFailed](err)
	if !refused && !IsUnanswered(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	chain, problem := Describe(ctx, c, id)
	switch {
	case problem != nil:
		return problem
	case chain.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		failure := c.GetWorkflow(ctx, id, chain.GetExecution().GetRunId()).Get(ctx, nil)
		return fmt.Errorf("it failed: %w", RootCause(failure))
	case refused:
		return err
	default:
		return fmt.Errorf("no worker answered within %s; is one running on task queue %s?", patience,
			chain.GetTaskQueue())
	}
}

// undecodable is the beginning of the SDK's message for a workflow input that cannot be decoded. After it, the message
// contains the text undecoded, the reason, and the name of the workflow.
const (
	undecodable = "unable to decode the workflow function input payload"
	undecoded   = "unable to decode: "
)

// RootCause returns the message of the application error inside a workflow's error. It returns any other error
// unchanged. For an input that cannot be decoded, RootCause shortens the SDK's message.
func RootCause(err error) error {
	application, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok {
		return err
	}
	if _, reason, found := strings.Cut(application.Message(), undecoded); found &&
		strings.HasPrefix(application.Message(), undecodable) {
		reason, _, _ = strings.Cut(reason, ", function name")
		return fmt.Errorf("its input is not valid JSON: %s", reason)
	}
	return errors.New(application.Message())
}
