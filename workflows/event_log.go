package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// eventLog keeps the events of a workflow: the latest in what people see, and all in the records.
type eventLog struct {
	*view

	// unrecorded are the events that the next record takes along.
	unrecorded []escalation.Event
}

// add adds an event. It fills in the key, the chain, the time and, if none is given, the severity. What is said at a gate
// is recorded in full; the visible state, which each run hands to the next, keeps its beginning.
func (l *eventLog) add(ctx workflow.Context, event escalation.Event) {
	// The run's ID is in the key because a reset repeats a part of the workflow: its events are new ones.
	event.Key = fmt.Sprintf("%s/%d", workflow.GetInfo(ctx).WorkflowExecution.RunID, len(l.chain.Events)+1)
	event.ChainID = l.chain.ID
	event.Message = plaintext.Cut(event.Message, longestMessage(event.Kind))
	event.At = workflow.Now(ctx)
	if event.Severity == "" {
		event.Severity = escalation.SeverityInfo
	}
	l.unrecorded = append(l.unrecorded, event)
	event.Message = clip(event.Message)
	l.chain.Events = append(l.chain.Events, event)
	workflow.GetLogger(ctx).Info(event.Message, "kind", event.Kind, "session_id", event.SessionID)
}

// take returns the events that are not recorded yet, and forgets them.
func (l *eventLog) take() []escalation.Event {
	events := l.unrecorded
	l.unrecorded = nil
	return events
}

// record stores the events that are not recorded yet, and publishes what has changed. With release other chains may repair
// the services of this one. It works when ctx is cancelled, too.
func (l *eventLog) record(ctx workflow.Context, summary string, release bool) error {
	if err := l.store(ctx, summary, release); err != nil {
		return err
	}
	return l.publish(ctx)
}

// store is record without publishing.
func (l *eventLog) store(ctx workflow.Context, summary string, release bool) error {
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var records *activities.Records
	return workflow.ExecuteActivity(withRecords(disconnected, summary), records.RecordEvents, l.input(release)).Get(disconnected, nil)
}

// recordEnd is record for the end of a cancelled workflow: it tries once, because a database that is away is not worth
// waiting for. What it leaves open the workers' sweep closes.
func (l *eventLog) recordEnd(ctx workflow.Context) error {
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var records *activities.Records
	recording := withOneTry(disconnected, "record the end")
	if err := workflow.ExecuteActivity(recording, records.RecordEvents, l.input(true)).Get(recording, nil); err != nil {
		workflow.GetLogger(ctx).Warn("the end of the chain could not be recorded", "error", err)
	}
	return l.publish(ctx)
}

// recordRest stores the events that no record took along. It does not fail: what they say is in the workflow's result, too.
func (l *eventLog) recordRest(ctx workflow.Context) {
	if len(l.unrecorded) == 0 {
		return
	}
	if err := l.record(ctx, "record events", false); err != nil {
		workflow.GetLogger(ctx).Error("events were not recorded", "error", err)
	}
}

func (l *eventLog) input(release bool) activities.RecordEventsInput {
	return activities.RecordEventsInput{ChainID: l.chain.ID, Events: l.take(), Release: release}
}

// readRecords runs an activity that reads a few rows and changes nothing. It tries once as a local activity, which takes
// neither a round trip nor events of the history. If that fails it runs an ordinary activity, which people see in the Web UI
// and Temporal retries for as long as it takes.
//
// What writes is an ordinary activity from the beginning: the history holds what is written before it is. A workflow task that
// is repeated, after a crash or because a signal arrived at its end, could decide otherwise than what a local one had
// written.
func readRecords(ctx workflow.Context, activity, input, result any) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err := workflow.ExecuteLocalActivity(ctx, activity, arguments(input)...).Get(ctx, result)
	if err == nil || ctx.Err() != nil || permanent(err) {
		return err
	}
	workflow.GetLogger(ctx).Warn("the records do not answer: they are asked again by an ordinary activity", "error", err)
	return workflow.ExecuteActivity(ctx, activity, arguments(input)...).Get(ctx, result)
}

// arguments returns the arguments of an activity that takes one input, or none if it is nil.
func arguments(input any) []any {
	if input == nil {
		return nil
	}
	return []any{input}
}

// permanent reports whether a retry would fail in the same way.
func permanent(err error) bool {
	application, is := errors.AsType[*temporal.ApplicationError](err)
	return is && application.NonRetryable()
}
