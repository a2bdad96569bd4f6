package supervisor

import (
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// unreplayable is the length from which a history can contain decisions to replay, in events. In a shorter history,
// no worker has run the workflow yet.
const unreplayable = 3

// errEndsHere is the error for a workflow that still runs, although this program would already have ended it.
var errEndsHere = errors.New("it goes on, and this program would have ended it")

// Decoding holds the converters of a worker, which decode data from Temporal. If a converter is nil, the SDK's own
// converter is used.
type Decoding struct {
	Data    converter.DataConverter
	Failure converter.FailureConverter
}

// Replay replays the history of a run with the workflows of this program. It returns an error if a worker of this
// program could not continue the run. Nothing is executed.
func Replay(history *historypb.History, run workflow.Execution, decoding Decoding) error {
	events := history.GetEvents()
	if len(events) < unreplayable {
		return nil
	}
	seen := &endings{}
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		DataConverter:            decoding.Data,
		FailureConverter:         decoding.Failure,
		Interceptors:             []interceptor.WorkerInterceptor{seen},
		DisableDeadlockDetection: true, // a busy machine would look like a workflow that blocks
	})
	if err != nil {
		return err
	}
	registerWorkflows(replayer)
	// Replay under the original ID, because a workflow derives other IDs from it.
	err = replayer.ReplayWorkflowHistoryWithOptions(nil, history,
		worker.ReplayWorkflowHistoryOptions{OriginalExecution: run})
	if err == nil && seen.ended && !isEnd(events[len(events)-1]) {
		err = errEndsHere
		if seen.err != nil {
			err = fmt.Errorf("%w: %w", errEndsHere, seen.err)
		}
	}
	return err
}

// isEnd reports whether the event is the end of a run.
func isEnd(event *historypb.HistoryEvent) bool {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return true
	default:
		return false
	}
}

// endings is an interceptor that notes whether the workflow returned. The replayer itself does not compare the end of a
// workflow with its history.
type endings struct {
	interceptor.WorkerInterceptorBase
	ended bool
	err   error
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (e *endings) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &endingWorkflow{interceptor.WorkflowInboundInterceptorBase{Next: next}, e}
}

type endingWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
	seen *endings
}

// ExecuteWorkflow implements interceptor.WorkflowInboundInterceptor. If the workflow waits, the replayer ends the
// workflow's goroutine. Then the call of Next does not return, and ended stays false.
func (w *endingWorkflow) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	result, err := w.Next.ExecuteWorkflow(ctx, in)
	w.seen.ended, w.seen.err = true, err
	return result, err
}
