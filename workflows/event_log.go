package workflows

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

// eventLog keeps the events of a workflow. The visible state holds only the latest events. The records hold all events.
type eventLog struct {
	*view

	// firstRunID is the run ID with which the workflow began; empty if this run is the first.
	firstRunID string
	// unrecorded holds the events that the next activity call will record.
	unrecorded []escalation.Event
	// progress describes the chain's work on its incidents from now on; nil if that work has not changed. The next
	// activity that writes events or closes the session stores progress in the records.
	progress *escalation.ChainProgress
}

// firstRun returns the run ID with which the workflow began. A reset does not change this ID. Temporal's own first run
// ID is not suitable, because all runs of a cron schedule share that ID.
func (l *eventLog) firstRun(ctx workflow.Context) string {
	return cmp.Or(l.firstRunID, workflow.GetInfo(ctx).OriginalRunID)
}

// add adds an event. It sets the event's key, chain and time, and its severity if that is empty. The records keep the
// full message of a gate event. The visible state keeps only the beginning of the message, because each run passes the
// visible state to the next.
func (l *eventLog) add(ctx workflow.Context, event escalation.Event) {
	// The key contains the run ID. After a reset, a new run repeats a part of the workflow, and the events of that run
	// need new keys.
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
	attributes := []any{"kind", event.Kind, "chain_id", event.ChainID}
	if event.SessionID != "" {
		attributes = append(attributes, "session_id", event.SessionID, "tier", int(l.tierOf(event.SessionID)))
	}
	workflow.GetLogger(ctx).Info(event.Message, attributes...)
}

// tierOf returns the tier of a session; 0 if the visible state does not have the session.
func (l *eventLog) tierOf(sessionID string) escalation.Tier {
	for i := range l.chain.Sessions {
		if l.chain.Sessions[i].SessionID == sessionID {
			return l.chain.Sessions[i].Tier
		}
	}
	return 0
}

// decided adds the event of a decision, and shows its rule and its reason.
func (l *eventLog) decided(ctx workflow.Context, decision escalation.Decision) {
	event := escalation.Event{Kind: escalation.EventDecision, Severity: decision.Severity(), Message: describeDecision(decision)}
	if last := l.chain.Last(); last != nil {
		event.SessionID = last.SessionID
	}
	l.chain.Rule, l.chain.Reason = decision.Rule, decision.Reason
	l.add(ctx, event)
}

// ended shows the outcome of a decision that ends the workflow, and adds its event.
func (l *eventLog) ended(ctx workflow.Context, decision escalation.Decision) {
	l.chain.Outcome, l.chain.EndedAt = decision.Outcome, workflow.Now(ctx)
	l.add(ctx, escalation.Event{
		Kind: escalation.EventChainEnded, Severity: decision.Severity(), Message: describeOutcome(l.chain),
	})
}

// refuse ends the workflow because its input is invalid or not permitted. It returns the error for the end of the
// workflow. Call refuse before the workflow has recorded anything or run a session.
func (l *eventLog) refuse(ctx workflow.Context, problem error) error {
	chain := &l.chain
	chain.Outcome, chain.Reason, chain.EndedAt = escalation.OutcomeFailed, problem.Error(), workflow.Now(ctx)
	refusal := temporal.NewNonRetryableApplicationError(problem.Error(), ErrorTypeInput, nil)
	return cmp.Or(l.publish(ctx), refusal)
}

// take returns the events that are not recorded yet, and clears the list.
func (l *eventLog) take() []escalation.Event {
	events := l.unrecorded
	l.unrecorded = nil
	return events
}

// record stores the events that are not recorded yet, and publishes changed state. If release is true, record also
// unlocks the services of this chain, so that other chains can repair them. Cancelling ctx does not prevent the
// recording.
func (l *eventLog) record(ctx workflow.Context, summary string, release bool) error {
	if err := l.store(ctx, summary, release); err != nil {
		return err
	}
	return l.publish(ctx)
}

// store does the same as record, but does not publish the state.
func (l *eventLog) store(ctx workflow.Context, summary string, release bool) error {
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var records *activities.Records
	return workflow.ExecuteActivity(withRecords(disconnected, summary), records.RecordEvents, l.input(ctx, release)).Get(disconnected, nil)
}

// recordUnlessCancelled does the same as record. If the workflow is or becomes cancelled, it does not wait for an unavailable
// database: it then tries once more, and the workers' sweep settles what that has not recorded.
func (l *eventLog) recordUnlessCancelled(ctx workflow.Context, summary string, release bool) error {
	if ctx.Err() == nil {
		if err := l.storeUnlessCancelled(ctx, summary, release); err != nil {
			return err
		}
		if len(l.unrecorded) == 0 && l.progress == nil {
			return l.publish(ctx)
		}
	}
	return l.recordEnd(ctx)
}

// storeUnlessCancelled does the same as store. If the workflow is cancelled, it stops waiting for the database, and the record
// of the end contains what is not stored.
func (l *eventLog) storeUnlessCancelled(ctx workflow.Context, summary string, release bool) error {
	var records *activities.Records
	input := l.input(ctx, release)
	err := workflow.ExecuteActivity(withRecords(ctx, summary), records.RecordEvents, input).Get(ctx, nil)
	if err != nil {
		l.unrecorded = append(input.Events, l.unrecorded...) // some may be recorded; their keys prevent duplicates
		l.progress = cmp.Or(l.progress, input.Progress)
	}
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// recordEnd records the end of a cancelled workflow. It tries only once, because a cancelled workflow must not wait for
// an unavailable database. If the attempt fails, the workers' sweep closes the open records later.
func (l *eventLog) recordEnd(ctx workflow.Context) error {
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var records *activities.Records
	recording := withOneTry(disconnected, "record the end")
	if err := workflow.ExecuteActivity(recording, records.RecordEvents, l.input(ctx, true)).Get(recording, nil); err != nil {
		workflow.GetLogger(ctx).Warn("the end of the chain could not be recorded", "error", err)
	}
	return l.publish(ctx)
}

// recordRest stores the events that no earlier call has recorded. If that fails, recordRest logs the error, and the
// workflow still ends. The workflow's result contains the facts of these events.
func (l *eventLog) recordRest(ctx workflow.Context) {
	if len(l.unrecorded) == 0 {
		return
	}
	if ctx.Err() != nil { // a cancelled workflow must not wait for an unavailable database
		_ = l.recordEnd(ctx) // it has logged a failure
		return
	}
	if err := l.record(ctx, "record events", false); err != nil {
		workflow.GetLogger(ctx).Error("events were not recorded", "error", err)
	}
}

func (l *eventLog) input(ctx workflow.Context, release bool) activities.RecordEventsInput {
	return activities.RecordEventsInput{
		ChainID: l.chain.ID, FirstRunID: l.firstRun(ctx), Events: l.take(), Release: release, Progress: l.takeProgress(),
	}
}

// takeProgress returns the progress that is not recorded yet, and clears it.
func (l *eventLog) takeProgress() *escalation.ChainProgress {
	progress := l.progress
	l.progress = nil
	return progress
}

// readRecords runs an activity that reads a few rows and changes nothing. It first tries the activity as a local activity.
func readRecords(ctx workflow.Context, activity, input, result any) error {
	return localFirst(ctx, activity, input, result)
}

// localFirst tries an activity once as a local activity, which needs no round trip and fewer history events. If the local
// activity fails, localFirst runs an ordinary activity. People see the ordinary activity in the Web UI, and Temporal retries
// it without limit.
//
// An activity that writes must be ordinary. Temporal stores the input of an ordinary activity in the history before
// the activity runs. It does not store the input of a local activity. After a crash, or if a signal arrives at the
// end of the workflow task, Temporal repeats the task. The repeated task could decide differently from what a local
// activity has already written. Two kinds of records are exceptions, because the repeated task recognises them: messages (see
// conversationRun.store), and some sessions that only observe (see sessions.record).
func localFirst(ctx workflow.Context, activity, input, result any) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err := workflow.ExecuteLocalActivity(ctx, activity, input).Get(ctx, result)
	if err == nil || ctx.Err() != nil || permanent(err) {
		return err
	}
	workflow.GetLogger(ctx).Warn("the records do not answer: they are asked again by an ordinary activity", "error", err)
	return workflow.ExecuteActivity(ctx, activity, input).Get(ctx, result)
}

// permanent reports whether err is permanent, so that a retry would fail in the same way.
func permanent(err error) bool {
	application, is := errors.AsType[*temporal.ApplicationError](err)
	return is && application.NonRetryable()
}

// rootMessage returns the innermost message of an activity's error.
func rootMessage(err error) string {
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
