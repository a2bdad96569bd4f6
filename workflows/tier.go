package workflows

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// runStep runs a session, unless it is not admitted, and decides what follows. All of that is
// recorded when it returns.
func (c *chainRun) runStep(ctx workflow.Context, next *step) (escalation.Session, escalation.Decision, error) {
	if missing := c.missingFromHandoff(ctx, *next); len(missing) > 0 {
		return c.runFromHandoff(ctx, next, missing)
	}
	opening, err := c.open(ctx, *next)
	if err != nil {
		return escalation.Session{}, escalation.Decision{}, err
	}
	if opening.Refusal != nil {
		return c.refused(ctx, next, *opening.Refusal)
	}
	next.refused = false
	session := c.runTier(ctx, *next, opening)
	decision := escalation.Gated(c.policy, c.decide(ctx, *next, session))
	return session, decision, c.conclude(ctx, session, decision)
}

// refused decides what follows a step that was not admitted.
func (c *chainRun) refused(
	ctx workflow.Context, next *step, refusal escalation.Admission,
) (escalation.Session, escalation.Decision, error) {
	// What is refused has not run: a person may ask for just that tier, and pass what refused it.
	c.receiveOrders(ctx, next.tier-1)
	decision := escalation.Gated(c.policy, escalation.DecideRefused(refusal))
	if c.order != nil && c.mayOrderRefused(ctx, decision) {
		*next = next.ordered(c.takeOrder())
		return c.runStep(ctx, next)
	}
	next.refused = true
	if decision.Action == escalation.DecisionWait {
		return escalation.Session{}, decision, nil
	}
	return escalation.Session{}, decision, c.concludeRefusal(ctx, decision)
}

// runTier runs the agent of a session and returns the session as it ended.
func (c *chainRun) runTier(ctx workflow.Context, next step, opening escalation.Opening) escalation.Session {
	session := opening.Session
	input := activities.RunTierInput{
		ChainID:    c.state.ID,
		SessionID:  session.SessionID,
		Tier:       next.tier,
		Policy:     c.policy,
		Services:   c.input.Services, // the operator's limit, which no verdict moves
		Request:    c.input.Prompt,
		Continuity: session.Continuity,
		Directory:  c.directory,
		Cooldowns:  opening.Services,
		BudgetUSD:  session.BudgetUSD,
	}
	if next.purpose == escalation.PurposeRecheck && next.continues == nil {
		input.Recheck, input.Services = true, c.state.Services
	}
	if next.order != nil {
		input.Guidance = next.order.Guidance
	}
	if origin := next.origin(); origin != nil {
		input.ParentTier, input.ParentSessionID = origin.Tier, origin.SessionID
	}
	if next.continues != nil {
		input.Continues, input.InFlight = true, c.inFlight
	}
	if session.Continuity == escalation.ContinuityHandoff {
		input.Handoff = c.handoff(ctx, next, opening)
	}
	session.Report = c.runAgent(withTier(ctx, c.policy.For(next.tier), summarize(session)), input)
	session.EndedAt = workflow.Now(ctx)
	return session
}

// decide says what follows a session that has ended. A person's order counts up to this moment.
func (c *chainRun) decide(ctx workflow.Context, next step, session escalation.Session) escalation.Decision {
	c.receiveOrders(ctx, session.Tier)
	standing := escalation.Standing{
		Floor: next.floor,
		Whole: c.state.Trigger == escalation.TriggerIssue || next.purpose == escalation.PurposeRecheck,
	}
	if c.order != nil && c.mayOrder(ctx, escalation.Decide(c.policy, session, standing)) {
		standing.Order = c.order.ToTier
	}
	return escalation.Decide(c.policy, session, standing)
}

// continuity is how a step gets its context.
func (c *chainRun) continuity(next step) escalation.ContinuityChoice {
	if next.purpose == escalation.PurposeHandoff { // only the conversation itself can be asked
		return escalation.ContinuityChoice{Continuity: escalation.ContinuityResume, Reason: escalation.ReasonParentSession}
	}
	return escalation.ChooseContinuity(escalation.Situation{
		Parent:         next.parent,
		ResumeFailed:   next.resumeFailed,
		TranscriptLost: next.transcriptLost,
		Window:         c.windowOf(c.policy.For(next.tier)),
		Threshold:      c.policy.ResumeThreshold,
		MaxTokens:      c.policy.ResumeMaxTokens,
		Mode:           c.policy.Continuity,
	})
}

func (c *chainRun) newSession(ctx workflow.Context, next step) escalation.Session {
	choice := c.continuity(next)
	session := escalation.Session{
		ChainID:          c.state.ID,
		SessionID:        newSessionID(ctx),
		Tier:             next.tier,
		Model:            c.policy.For(next.tier).Model,
		Trigger:          c.state.Trigger,
		Continuity:       choice.Continuity,
		ContinuityReason: choice.Reason,
		Purpose:          next.purpose,
		StartedAt:        workflow.Now(ctx),
		Report:           escalation.Report{Status: escalation.SessionRunning},
	}
	if next.continues != nil {
		session.Purpose = escalation.PurposeContinuation
		session.Continuity, session.ContinuityReason = escalation.ContinuityResume, escalation.ReasonContinued
	}
	if origin := next.origin(); origin != nil {
		session.ParentID = origin.ID
	}
	return session
}

// admissionRequest is what the admission of a step depends on.
func (c *chainRun) admissionRequest(ctx workflow.Context, next step) escalation.AdmissionRequest {
	return escalation.AdmissionRequest{
		ChainID:       c.state.ID,
		Tier:          next.tier,
		Purpose:       next.purpose,
		At:            workflow.Now(ctx),
		Services:      c.state.Services,
		ChainSpentUSD: c.state.SpentAtMostUSD(),
		Force:         next.forced(),
		Approved:      next.passesLimit,
		WaitingSince:  c.waitingSince,
	}
}

// runAgent runs the agent. It always gives a report: an agent that could not be judged
// after all retries has failed, one that was cancelled was stopped.
func (c *chainRun) runAgent(ctx workflow.Context, input activities.RunTierInput) escalation.Report {
	var tiers *activities.Tiers
	var result activities.RunTierResult
	unjudged := callAgent(ctx, input.SessionID, tiers.RunTier, input, &result)
	c.inFlight = result.InFlight
	if unjudged != nil {
		return *unjudged
	}
	return result.Report
}

// callAgent has activity run the agent of a session, and decodes what came of it into result. It returns
// the report of an agent that could not be judged; nil if it could.
//
// When the chain is cancelled, the agent is stopped and tells what it has spent. One that waits to be
// started again is given up by Temporal without a word on the attempts before: so that is looked up first.
func callAgent(ctx workflow.Context, sessionID string, activity, input, result any) (unjudged *escalation.Report) {
	if ctx.Err() != nil && spentBeforeCancel(ctx) {
		return stopped(escalation.Report{})
	}
	agent, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	running := workflow.ExecuteActivity(agent, activity, input)
	spent := escalation.Report{CostEstimated: true} // unknown, if somebody else cancels it
	workflow.NewSelector(ctx).
		AddFuture(running, func(workflow.Future) {}).
		AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {
			spent = spentSoFar(ctx, sessionID)
			stop()
		}).
		Select(ctx)
	switch err := running.Get(agent, result); {
	case err == nil:
		return nil
	case temporal.IsCanceledError(err):
		return stopped(spent)
	default:
		report := activities.SpentBefore(err)
		report.Status, report.Error = escalation.SessionFailed, rootMessage(err)
		return &report
	}
}

// spentBeforeCancel reports whether the chain looks at what an agent has spent before it is cancelled.
func spentBeforeCancel(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, changeSpentBeforeCancel, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// stopped is the report of an agent that was not at work when the chain was cancelled.
func stopped(spent escalation.Report) *escalation.Report {
	spent.Status, spent.Error = escalation.SessionStopped, "the chain was cancelled"
	return &spent
}

// spentSoFar looks up what the attempts at a session have spent. If that cannot be told, it is unknown.
func spentSoFar(ctx workflow.Context, sessionID string) escalation.Report {
	if !spentBeforeCancel(ctx) {
		return escalation.Report{}
	}
	looking, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var attempts *activities.Attempts
	var spent escalation.Report
	err := workflow.ExecuteActivity(withSpending(looking, "what the agent has spent"), attempts.SpentSoFar,
		activities.SpentSoFarInput{SessionID: sessionID}).Get(looking, &spent)
	if err != nil {
		workflow.GetLogger(ctx).Warn("nobody can tell what a session has spent", "session_id", sessionID, "error", err)
		return escalation.Report{CostEstimated: true}
	}
	return spent
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
