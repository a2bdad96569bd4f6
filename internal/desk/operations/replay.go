package operations

import (
	"context"
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/plant/supervisor"
)

// ErrNoHistory means that Temporal has deleted the history of a run.
var ErrNoHistory = errors.New("its history is deleted")

// ReadError means that the history of a run could not be read. So it is unknown whether a replay would succeed.
type ReadError struct{ Err error }

// Error returns a phrase that contains the text of Temporal's error.
func (e *ReadError) Error() string { return "its history cannot be read: " + e.Err.Error() }

// Unwrap returns Err.
func (e *ReadError) Unwrap() error { return e.Err }

// Replay replays the history of one run with the workflows of this program. It returns an error if a worker of this
// program could not continue the run. Nothing is executed.
func Replay(ctx context.Context, c Connection, id, runID string) error {
	history, err := readHistory(ctx, c, id, runID)
	if err != nil {
		return err
	}
	return supervisor.Replay(history, workflow.Execution{ID: id, RunID: runID}, c.Decoding)
}

func readHistory(ctx context.Context, c Connection, id, runID string) (*historypb.History, error) {
	history := &historypb.History{}
	events := c.GetWorkflowHistory(ctx, id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
			return nil, ErrNoHistory
		}
		if err != nil {
			return nil, &ReadError{err}
		}
		history.Events = append(history.Events, event)
	}
	return history, nil
}
