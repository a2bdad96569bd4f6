package workflows

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// step is one tier to run, and where its context comes from.
type step struct {
	tier escalation.Tier
	// parent is the session whose context the tier continues; nil if none.
	parent *escalation.Session
	// resumeFailed and transcriptLost say why the parent's conversation is not tried again: it
	// could not be loaded, or it is gone.
	resumeFailed, transcriptLost bool
	// cutOff is a session of this very tier that had begun its work and cannot go on; nil if none.
	cutOff *escalation.Session
}

// firstStep is where the input says to begin.
func (c *chainRun) firstStep() step {
	first := step{tier: max(c.input.StartTier, escalation.TierObserve)}
	if from := c.input.ResumeFrom; from != nil {
		// The conversation is not a session of this chain: it has no record to link to,
		// and nothing is known of it but its id.
		first.parent = &escalation.Session{
			SessionID: from.SessionID,
			Report:    escalation.Report{ReportedSessionID: from.SessionID},
		}
	}
	return first
}

// checkStart refuses a chain whose first tier its policy forbids.
func checkStart(policy escalation.Policy, first escalation.Tier) error {
	if first > policy.MaxTier {
		return fmt.Errorf("start_tier %d is higher than the highest tier allowed, %d", int(first), int(policy.MaxTier))
	}
	return nil
}

// escalate is the step after session, to a higher tier.
func (s step) escalate(session escalation.Session, tier escalation.Tier) step {
	return step{tier: tier, parent: &session}
}

// handOff is the same step again, without the conversation that failed session was to go on from.
func (s step) handOff(failed escalation.Session) step {
	lost := failed.Status == escalation.SessionTranscriptLost
	next := step{tier: s.tier, parent: s.parent, resumeFailed: !lost, transcriptLost: lost}
	if failed.Attempts > 1 { // it was its own conversation that could not be loaded any more
		next.cutOff = &failed
	}
	return next
}

// runTier opens the record of a session, runs its agent, and returns the session as it ended.
func (c *chainRun) runTier(ctx workflow.Context, step step) (escalation.Session, error) {
	session, err := c.open(ctx, step)
	if err != nil {
		return session, err
	}
	input := activities.RunTierInput{
		ChainID:    c.state.ID,
		SessionID:  session.SessionID,
		Tier:       step.tier,
		Policy:     c.policy,
		Services:   c.input.Services, // the operator's limit, which no verdict moves
		Request:    c.input.Prompt,
		Continuity: session.Continuity,
		Directory:  c.directory,
	}
	if step.parent != nil {
		input.ParentTier, input.ParentSessionID = step.parent.Tier, step.parent.SessionID
	}
	if session.Continuity == escalation.ContinuityHandoff {
		handoff := escalation.NewHandoff(step.parent.Tier, step.tier, step.parent.Verdict, nil)
		if step.cutOff != nil {
			handoff = handoff.After(*step.cutOff)
		}
		input.Handoff = &handoff
	}
	session.Report = c.runAgent(withTier(ctx, c.policy.For(step.tier), summarize(session)), input)
	session.EndedAt = workflow.Now(ctx)
	return session, nil
}

// open chooses the continuity and the conversation's id and stores the record, so that
// the session has a name before it has a process.
func (c *chainRun) open(ctx workflow.Context, step step) (escalation.Session, error) {
	policy := c.policy.For(step.tier)
	choice := escalation.ChooseContinuity(escalation.Situation{
		Parent:         step.parent,
		ResumeFailed:   step.resumeFailed,
		TranscriptLost: step.transcriptLost,
		Window:         c.windowOf(policy),
		Threshold:      c.policy.ResumeThreshold,
		Mode:           c.policy.Continuity,
	})
	session := escalation.Session{
		ChainID:          c.state.ID,
		SessionID:        newSessionID(ctx),
		Tier:             step.tier,
		Model:            policy.Model,
		Trigger:          c.state.Trigger,
		Continuity:       choice.Continuity,
		ContinuityReason: choice.Reason,
		StartedAt:        workflow.Now(ctx),
		Report:           escalation.Report{Status: escalation.SessionRunning},
	}
	if step.parent != nil {
		session.ParentID = step.parent.ID
	}
	c.note(ctx, escalation.Event{
		Kind: escalation.EventSessionStarted, SessionID: session.SessionID, Message: describeSession(session),
	})
	recorded, err := c.record(ctx, session)
	if err != nil {
		return session, err
	}
	c.state.Sessions = append(c.state.Sessions, recorded)
	return recorded, c.publish(ctx)
}

// record has the record of a session opened. A chain that is cancelled before it is known to be
// open ends there: nothing has run, so nothing that was paid for is forgotten.
func (c *chainRun) record(ctx workflow.Context, session escalation.Session) (escalation.Session, error) {
	summary := "open record: " + summarize(session)
	opening := withOpening(ctx, summary)
	if !endsWhenCancelled(ctx) {
		disconnected, cancel := workflow.NewDisconnectedContext(ctx)
		defer cancel()
		opening = withRecords(disconnected, summary)
	}
	events := c.takeEvents()
	var records *activities.Records
	var opened activities.OpenSessionResult
	err := workflow.ExecuteActivity(opening, records.OpenSession,
		activities.OpenSessionInput{Session: session, Events: events}).Get(opening, &opened)
	if err != nil && opening.Err() != nil {
		c.unrecorded = events // those of them that are recorded are known by their keys
		return session, c.withdraw(ctx, session)
	}
	return opened.Session, err
}

// withdraw ends a chain that was cancelled before session began. The last try to open the record
// may have done so, and failed after that, so the record is closed if there is one. A database
// that is away is not waited for: what is left open then is settled by the next worker that starts.
func (c *chainRun) withdraw(ctx workflow.Context, session escalation.Session) error {
	const reason = "the chain was cancelled before the session began"
	c.abort(ctx, reason)
	var records *activities.Records
	closing, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	err := workflow.ExecuteActivity(withOneTry(closing, "withdraw record: "+summarize(session)), records.WithdrawSession,
		activities.CloseSessionInput{
			SessionID: session.SessionID,
			EndedAt:   workflow.Now(ctx),
			Report:    escalation.Report{Status: escalation.SessionStopped, Error: reason},
			Events:    c.takeEvents(),
		}).Get(closing, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("the end of the chain could not be recorded", "session_id", session.SessionID, "error", err)
	}
	return cmp.Or(c.publish(ctx), ctx.Err())
}

// runAgent runs the agent. It always gives a report: an agent that could not be judged
// after all retries has failed, one that was cancelled was stopped.
func (c *chainRun) runAgent(ctx workflow.Context, input activities.RunTierInput) escalation.Report {
	var tiers *activities.Tiers
	var result activities.RunTierResult
	err := workflow.ExecuteActivity(ctx, tiers.RunTier, input).Get(ctx, &result)
	if err == nil {
		return result.Report
	}
	report := activities.SpentBefore(err)
	report.Status = escalation.SessionFailed
	report.Error = rootMessage(err)
	if temporal.IsCanceledError(err) {
		report.Status = escalation.SessionStopped
		report.Error = "the chain was cancelled"
	}
	return report
}

// conclude stores what a session came to and what was decided on it.
func (c *chainRun) conclude(ctx workflow.Context, session escalation.Session, decision escalation.Decision) error {
	c.settle(ctx, session, decision)
	var records *activities.Records
	recording, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	err := workflow.ExecuteActivity(withRecords(recording, "close record: "+summarize(session)), records.CloseSession,
		activities.CloseSessionInput{
			SessionID: session.SessionID,
			EndedAt:   session.EndedAt,
			Report:    session.Report,
			Events:    c.takeEvents(),
		}).Get(recording, nil)
	if err != nil {
		return err
	}
	return c.publish(ctx)
}

// settle brings the visible state up to date with a session that has ended.
func (c *chainRun) settle(ctx workflow.Context, session escalation.Session, decision escalation.Decision) {
	*c.state.Last() = session
	c.state.CostUSD = escalation.TotalCostUSD(c.state.Sessions)
	c.state.Reason = decision.Reason
	if session.Verdict != nil && len(session.Verdict.Services) > 0 {
		c.state.Services = session.Verdict.Services
	}
	c.note(ctx, escalation.Event{
		Kind: escalation.EventSessionEnded, SessionID: session.SessionID, Message: describeEnd(session),
	})
	c.note(ctx, escalation.Event{
		Kind: escalation.EventDecision, SessionID: session.SessionID,
		Severity: decision.Severity(), Message: describeDecision(decision),
	})
	if decision.Action == escalation.DecisionComplete {
		c.state.Outcome = decision.Outcome
		c.state.EndedAt = workflow.Now(ctx)
		c.note(ctx, escalation.Event{
			Kind: escalation.EventChainEnded, Severity: decision.Severity(), Message: describeOutcome(c.state),
		})
	}
}

// windowOf returns the context window of a tier's model: as the CLI reported it last in
// this chain, else as configured.
func (c *chainRun) windowOf(policy escalation.TierPolicy) int {
	window := policy.ContextWindow
	for i := range c.state.Sessions {
		if session := &c.state.Sessions[i]; session.Model == policy.Model && session.ContextWindow > 0 {
			window = session.ContextWindow
		}
	}
	return window
}

// newSessionID chooses a conversation's id. It is drawn once and read from the history ever after.
func newSessionID(ctx workflow.Context) string {
	var id string
	// A UUID's string always encodes, so decoding it cannot fail.
	_ = workflow.SideEffect(ctx, func(workflow.Context) any { return uuid.NewString() }).Get(&id)
	return id
}

// rootMessage returns the sentence at the bottom of an activity's error.
func rootMessage(err error) string {
	if application, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return application.Message()
	}
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return fmt.Sprintf("no worker finished the tier in time (%s)", timeout.TimeoutType())
	}
	return err.Error()
}
