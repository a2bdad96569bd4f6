package workflows

import (
	"cmp"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// open asks for admission, chooses the continuity and the conversation's id, and stores the record,
// so that the session has a name before it has a process.
func (c *chainRun) open(ctx workflow.Context, next step) (escalation.Opening, error) {
	session := c.newSession(ctx, next)
	opening, err := c.record(ctx, next, session)
	if err != nil || opening.Refusal != nil {
		return opening, err
	}
	kind := escalation.EventSessionStarted
	if next.continues != nil {
		kind = escalation.EventSessionReused
	}
	c.note(ctx, escalation.Event{Kind: kind, SessionID: session.SessionID, Message: describeSession(opening.Session, next.continues)})
	c.state.Sessions = append(c.state.Sessions, opening.Session)
	return opening, c.publish(ctx)
}

// record has a session admitted and its record opened. A chain that is cancelled before that is
// known ends there: nothing has run, so nothing that was paid for is forgotten.
func (c *chainRun) record(ctx workflow.Context, next step, session escalation.Session) (escalation.Opening, error) {
	summary := "open record: " + summarize(session)
	recording := withOpening(ctx, summary)
	if !endsWhenCancelled(ctx) {
		disconnected, cancel := workflow.NewDisconnectedContext(ctx)
		defer cancel()
		recording = withRecords(disconnected, summary)
	}
	events := c.takeEvents()
	var records *activities.Records
	var opening escalation.Opening
	err := workflow.ExecuteActivity(recording, records.OpenSession, activities.OpenSessionInput{
		Session: session, Request: c.admissionRequest(ctx, next), Policy: c.policy, Events: events,
	}).Get(recording, &opening)
	if err != nil && recording.Err() != nil {
		c.unrecorded = events // those of them that are recorded are known by their keys
		return opening, c.withdraw(ctx, session)
	}
	return opening, err
}

// withdraw ends a chain that was cancelled before session began. The last try to open the record
// may have done so, and failed after that, so the record is closed if there is one. A database
// that is away is not waited for: what is left open then is settled by the workers' sweep.
func (c *chainRun) withdraw(ctx workflow.Context, session escalation.Session) error {
	const reason = "the chain was cancelled before the session began"
	c.abort(ctx, reason)
	var records *activities.Records
	closing, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	err := workflow.ExecuteActivity(withOneTry(closing, "withdraw record: "+summarize(session)), records.WithdrawSession,
		activities.CloseSessionInput{
			ChainID:   c.state.ID,
			SessionID: session.SessionID,
			EndedAt:   workflow.Now(ctx),
			Report:    escalation.Report{Status: escalation.SessionStopped, Error: reason},
			Events:    c.takeEvents(),
			Release:   true,
		}).Get(closing, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("the end of the chain could not be recorded", "session_id", session.SessionID, "error", err)
	}
	return cmp.Or(c.publish(ctx), ctx.Err())
}

// conclude stores what a session came to and what was decided on it.
func (c *chainRun) conclude(ctx workflow.Context, session escalation.Session, decision escalation.Decision) error {
	c.settleSession(ctx, session)
	c.settle(ctx, decision)
	var records *activities.Records
	recording, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	err := workflow.ExecuteActivity(withRecords(recording, "close record: "+summarize(session)), records.CloseSession,
		activities.CloseSessionInput{
			ChainID:   c.state.ID,
			SessionID: session.SessionID,
			EndedAt:   session.EndedAt,
			Report:    session.Report,
			Events:    c.takeEvents(),
			Release:   releases(decision),
		}).Get(recording, nil)
	if err != nil {
		return err
	}
	return c.publish(ctx)
}

// concludeRefusal stores a decision that follows no session.
func (c *chainRun) concludeRefusal(ctx workflow.Context, decision escalation.Decision) error {
	c.settle(ctx, decision)
	return c.recordEvents(ctx, "record the decision", releases(decision))
}

// releases reports whether the chain repairs nothing any more after decision, for now or for good.
func releases(decision escalation.Decision) bool {
	return decision.Action == escalation.DecisionComplete || decision.Action == escalation.DecisionGate
}

// recordEvents is storeEvents, and shows what has changed.
func (c *chainRun) recordEvents(ctx workflow.Context, summary string, release bool) error {
	if err := c.storeEvents(ctx, summary, release); err != nil {
		return err
	}
	return c.publish(ctx)
}

// storeEvents stores the events that are not recorded yet, and with release lets other chains
// repair the services of this one.
func (c *chainRun) storeEvents(ctx workflow.Context, summary string, release bool) error {
	var records *activities.Records
	recording, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	return workflow.ExecuteActivity(withRecords(recording, summary), records.RecordEvents, activities.RecordEventsInput{
		ChainID: c.state.ID, Events: c.takeEvents(), Release: release,
	}).Get(recording, nil)
}

// settleSession brings the visible state up to date with a session that has ended.
func (c *chainRun) settleSession(ctx workflow.Context, session escalation.Session) {
	session.Settle(session.Report)
	*c.state.Last() = session
	c.state.CostUSD = c.state.Earlier.CostUSD + escalation.TotalCostUSD(c.state.Sessions)
	if session.Verdict != nil && len(session.Verdict.Services) > 0 {
		c.state.Services = session.Verdict.Services
	}
	c.note(ctx, escalation.Event{
		Kind: escalation.EventSessionEnded, SessionID: session.SessionID, Message: describeEnd(session),
	})
}

// settle brings the visible state up to date with a decision.
func (c *chainRun) settle(ctx workflow.Context, decision escalation.Decision) {
	if decision.Action == escalation.DecisionComplete {
		c.receiveReplies(ctx) // what has come for a gate that never opened
	}
	event := escalation.Event{Kind: escalation.EventDecision, Severity: decision.Severity(), Message: describeDecision(decision)}
	if last := c.state.Last(); last != nil {
		event.SessionID = last.SessionID
	}
	c.state.Reason = decision.Reason
	c.note(ctx, event)
	if kind, tell := blockedBy(decision.Rule); tell && decision.Outcome == escalation.OutcomeNeedsHuman {
		c.notify(ctx, kind, decision.Reason)
	}
	if decision.Action == escalation.DecisionComplete {
		c.state.Outcome = decision.Outcome
		c.state.EndedAt = workflow.Now(ctx)
		c.note(ctx, escalation.Event{
			Kind: escalation.EventChainEnded, Severity: decision.Severity(), Message: describeOutcome(c.state),
		})
	}
}
