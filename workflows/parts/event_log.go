package parts

import (
	"cmp"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// EventLog keeps the events of a workflow. The visible state holds only the latest events. The records hold all events.
type EventLog struct {
	*view

	// FirstRunID is the run ID with which the workflow began; empty if this run is the first.
	FirstRunID string
	// unrecorded holds the events that the next activity call will record.
	unrecorded []escalation.Event
	// progress describes the chain's work on its incidents from now on; nil if that work has not changed. The next
	// activity that writes events or closes the session stores progress in the records.
	Progress *escalation.ChainProgress
}

// FirstRun returns the run ID with which the workflow began. A reset does not change this ID. Temporal's own first run
// ID is not suitable, because all runs of a cron schedule share that ID.
func (l *EventLog) FirstRun(ctx workflow.Context) string {
	return cmp.Or(l.FirstRunID, workflow.GetInfo(ctx).OriginalRunID)
}

// Add adds an event. It sets the event's key, chain and time, and its severity if that is empty. The records keep the
// full message of a gate event. The visible state keeps only the beginning of the message, because each run passes the
// visible state to the next.
func (l *EventLog) Add(ctx workflow.Context, event escalation.Event) {
	// The key contains the run ID. After a reset, a new run repeats a part of the workflow, and the events of that run
	// need new keys.
	event.Key = fmt.Sprintf("%s/%d", workflow.GetInfo(ctx).WorkflowExecution.RunID, len(l.Chain.Events)+1)
	event.ChainID = l.Chain.ID
	event.Message = plaintext.Cut(event.Message, longestMessage(event.Kind))
	event.At = workflow.Now(ctx)
	if event.Severity == "" {
		event.Severity = escalation.SeverityInfo
	}
	l.unrecorded = append(l.unrecorded, event)
	event.Message = Clip(event.Message)
	l.Chain.Events = append(l.Chain.Events, event)
	attributes := []any{"kind", event.Kind, "chain_id", event.ChainID}
	if event.SessionID != "" {
		attributes = append(attributes, "session_id", event.SessionID, "tier", int(l.tierOf(event.SessionID)))
	}
	workflow.GetLogger(ctx).Info(event.Message, attributes...)
}

// tierOf returns the tier of a session; 0 if the visible state does not have the session.
func (l *EventLog) tierOf(sessionID string) escalation.Tier {
	for i := range l.Chain.Sessions {
		if l.Chain.Sessions[i].SessionID == sessionID {
			return l.Chain.Sessions[i].Tier
		}
	}
	return 0
}

// Decided adds the event of a decision, and shows its rule and its reason.
func (l *EventLog) Decided(ctx workflow.Context, decision escalation.Decision) {
	event := escalation.Event{
		Kind: escalation.EventDecision, Severity: decision.Severity(),
		Message: describeDecision(decision),
	}
	if last := l.Chain.Last(); last != nil {
		event.SessionID = last.SessionID
	}
	l.Chain.Rule, l.Chain.Reason = decision.Rule, decision.Reason
	l.Add(ctx, event)
}

// Ended shows the outcome of a decision that ends the workflow, and adds its event.
func (l *EventLog) Ended(ctx workflow.Context, decision escalation.Decision) {
	l.Chain.Outcome, l.Chain.EndedAt = decision.Outcome, workflow.Now(ctx)
	l.Add(ctx, escalation.Event{
		Kind: escalation.EventChainEnded, Severity: decision.Severity(), Message: DescribeOutcome(l.Chain),
	})
}

// Refuse ends the workflow because its input is invalid or not permitted. It returns the error for the end of the
// workflow. Call Refuse before the workflow has recorded anything or run a session.
func (l *EventLog) Refuse(ctx workflow.Context, problem error) error {
	chain := &l.Chain
	chain.Outcome, chain.Reason, chain.EndedAt = escalation.OutcomeFailed, problem.Error(), workflow.Now(ctx)
	refusal := temporal.NewNonRetryableApplicationError(problem.Error(), ErrorTypeInput, nil)
	return cmp.Or(l.Publish(ctx), refusal)
}

// take returns the events that are not recorded yet, and clears the list.
func (l *EventLog) take() []escalation.Event {
	events := l.unrecorded
	l.unrecorded = nil
	return events
}

// Record stores the events that are not recorded yet, and publishes changed state. If release is true, Record also
// unlocks the services of this chain, so that other chains can repair them. Cancelling ctx does not prevent the
// recording.
func (l *EventLog) Record(ctx workflow.Context, summary string, release bool) error {
	if err := l.Store(ctx, summary, release); err != nil {
		return err
	}
	return l.Publish(ctx)
}

// Store does the same as record, but does not publish the state.
func (l *EventLog) Store(ctx workflow.Context, summary string, release bool) error {
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var records *activities.Records
	return workflow.ExecuteActivity(WithRecords(disconnected, summary), records.RecordEvents,
		l.input(ctx, release)).Get(disconnected, nil)
}

// RecordUnlessCancelled does the same as record. If the workflow is or becomes cancelled, it does not wait for an
// unavailable database: it then tries once more, and the workers' sweep settles what that has not recorded.
func (l *EventLog) RecordUnlessCancelled(ctx workflow.Context, summary string, release bool) error {
	if ctx.Err() == nil {
		if err := l.StoreUnlessCancelled(ctx, summary, release); err != nil {
			return err
		}
		if len(l.unrecorded) == 0 && l.Progress == nil {
			return l.Publish(ctx)
		}
	}
	return l.RecordEnd(ctx)
}

// StoreUnlessCancelled does the same as store. If the workflow is cancelled, it stops waiting for the database, and the
// record of the end contains what is not stored.
func (l *EventLog) StoreUnlessCancelled(ctx workflow.Context, summary string, release bool) error {
	var records *activities.Records
	input := l.input(ctx, release)
	err := workflow.ExecuteActivity(WithRecords(ctx, summary), records.RecordEvents, input).Get(ctx, nil)
	if err != nil {
		l.unrecorded = append(input.Events, l.unrecorded...) // some may be recorded; their keys prevent duplicates
		l.Progress = cmp.Or(l.Progress, input.Progress)
	}
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// RecordEnd records the end of a cancelled workflow. It tries only once, because a cancelled workflow must not wait for
// an unavailable database. If the attempt fails, the workers' sweep closes the open records later.
func (l *EventLog) RecordEnd(ctx workflow.Context) error {
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var records *activities.Records
	recording := WithOneTry(disconnected, "record the end")
	if err := workflow.ExecuteActivity(recording, records.RecordEvents, l.input(ctx, true)).Get(recording,
		nil); err != nil {
		workflow.GetLogger(ctx).Warn("the end of the chain could not be recorded", "error", err)
	}
	return l.Publish(ctx)
}

// RecordRest stores the events that no earlier call has recorded. If that fails, RecordRest logs the error, and the
// workflow still ends. The workflow's result contains the facts of these events.
func (l *EventLog) RecordRest(ctx workflow.Context) {
	if len(l.unrecorded) == 0 {
		return
	}
	if ctx.Err() != nil { // a cancelled workflow must not wait for an unavailable database
		_ = l.RecordEnd(ctx) // it has logged a failure
		return
	}
	if err := l.Record(ctx, "record events", false); err != nil {
		workflow.GetLogger(ctx).Error("events were not recorded", "error", err)
	}
}

func (l *EventLog) input(ctx workflow.Context, release bool) activities.RecordEventsInput {
	return activities.RecordEventsInput{
		ChainID: l.Chain.ID, FirstRunID: l.FirstRun(ctx), Events: l.take(), Release: release,
		Progress: l.takeProgress(),
	}
}

// takeProgress returns the progress that is not recorded yet, and clears it.
func (l *EventLog) takeProgress() *escalation.ChainProgress {
	progress := l.Progress
	l.Progress = nil
	return progress
}

// ReadRecords runs an activity that reads a few rows and changes nothing. It first tries the activity as a local
// activity.
func ReadRecords(ctx workflow.Context, activity, input, result any) error {
	return localFirst(ctx, activity, input, result)
}

// localFirst tries an activity once as a local activity, which needs no round trip and fewer history events. If the
// local activity fails, localFirst runs an ordinary activity. People see the ordinary activity in the Web UI, and
// Temporal retries it without limit.
//
// An activity that writes must be ordinary. Temporal stores the input of an ordinary activity in the history before the
// activity runs. It does not store the input of a local activity. After a crash, or if a signal arrives at the end of
// the workflow task, Temporal repeats the task. The repeated task could decide differently from what a local activity
// has already written. Two kinds of records are exceptions, because the repeated task recognises them: messages (see
// package talk), and some sessions that only observe (see Sessions.record).
func localFirst(ctx workflow.Context, activity, input, result any) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err := workflow.ExecuteLocalActivity(ctx, activity, input).Get(ctx, result)
	if err == nil || ctx.Err() != nil || Permanent(err) {
		return err
	}
	workflow.GetLogger(ctx).Warn("the records do not answer: they are asked again by an ordinary activity", "error",
		err)
	return workflow.ExecuteActivity(ctx, activity, input).Get(ctx, result)
}

// Permanent reports whether err is permanent, so that a retry would fail in the same way.
func Permanent(err error) bool {
	application, is := errors.AsType[*temporal.ApplicationError](err)
	return is && application.NonRetryable()
}

// RootMessage returns the innermost message of an activity's error.
func RootMessage(err error) string {
	if application, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return application.Message()
	}
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return fmt.Sprintf("no worker finished the tier in time (%s)", timeout.TimeoutType())
	}
	return err.Error()
}

// cancelled returns the error of a cancelled chain, with the chain in its details.
func cancelled(chain escalation.Chain) error { return temporal.NewCanceledError(chain) }
