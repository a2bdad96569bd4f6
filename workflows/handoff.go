package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// missingFromHandoff returns the fields that the tier before is asked for, because next starts from a
// handoff and the verdict does not fill them; none if it is not asked. Only a conversation that is
// still there can be asked, within the highest tier, and not in a dry run, which writes nothing. A
// recheck is told what to look at, and is meant to be cheap.
func (c *chainRun) missingFromHandoff(ctx workflow.Context, next step) []string {
	choice := c.continuity(next)
	reachable := choice.Reason == escalation.ReasonConfigured || choice.Reason == escalation.ReasonContextPressure
	switch {
	case next.asked, next.continues != nil, next.purpose != escalation.PurposeTier:
		return nil
	case choice.Continuity != escalation.ContinuityHandoff, !reachable:
		return nil
	case next.parent.ReportedSessionID == "", next.resumeFailed, next.transcriptLost:
		return nil
	case c.policy.DryRun, !next.parent.Tier.Valid(), next.parent.Tier > c.policy.MaxTier:
		return nil
	}
	missing := escalation.MissingFields(next.parent.Tier, next.parent.Verdict)
	if len(missing) == 0 || workflow.GetVersion(ctx, changeAskForHandoff, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return nil
	}
	return missing
}

// runFromHandoff runs next after the tier before has been asked for the handoff, in a session of its
// own. It is not asked for a step that would not be admitted.
func (c *chainRun) runFromHandoff(
	ctx workflow.Context, next *step, missing []string,
) (escalation.Session, escalation.Decision, error) {
	admission, err := c.review(ctx, *next)
	if err != nil {
		return escalation.Session{}, escalation.Decision{}, err
	}
	if !admission.Granted {
		return c.refused(ctx, next, admission)
	}
	opening, err := c.open(ctx, step{tier: next.parent.Tier, purpose: escalation.PurposeHandoff, parent: next.parent})
	if err != nil {
		return escalation.Session{}, escalation.Decision{}, err
	}
	if opening.Refusal != nil {
		return c.refused(ctx, next, *opening.Refusal)
	}
	session, written := c.askForHandoff(ctx, *next, opening, missing)
	decision := escalation.Gated(c.policy, c.decideHandoff(ctx, *next, session, written.Problem))
	// Whoever takes the step after a handoff that cannot be used has it start from the verdict.
	next.asked, next.handoff = true, written.Handoff
	if err := c.conclude(ctx, session, decision); err != nil || decision.Action == escalation.DecisionComplete {
		return session, decision, err
	}
	if decision.Action == escalation.DecisionGate {
		next.refused = true
		return session, decision, nil
	}
	if c.order != nil {
		*next = next.ordered(c.takeOrder())
	}
	return c.runStep(ctx, next)
}

// askForHandoff has the tier before write the handoff to next, and returns that session as it ended.
func (c *chainRun) askForHandoff(
	ctx workflow.Context, next step, opening escalation.Opening, missing []string,
) (escalation.Session, activities.WriteHandoffResult) {
	session := opening.Session
	var tiers *activities.Tiers
	var written activities.WriteHandoffResult
	agent := withTier(ctx, c.policy.For(session.Tier), summarize(session))
	unjudged := callAgent(agent, session.SessionID, tiers.WriteHandoff, activities.WriteHandoffInput{
		ChainID:         c.state.ID,
		SessionID:       session.SessionID,
		ParentSessionID: next.parent.SessionID,
		Tier:            session.Tier,
		Next:            next.tier,
		Policy:          c.policy,
		Directory:       c.directory,
		Missing:         missing,
		Cooldowns:       opening.Services,
		BudgetUSD:       session.BudgetUSD,
	}, &written)
	if unjudged != nil {
		written.Report = *unjudged
		written.Problem = fmt.Sprintf("%s left no handoff: %s", session.Tier, written.Report.Error)
	}
	session.Report = written.Report
	session.EndedAt = workflow.Now(ctx)
	return session, written
}

// decideHandoff says what follows the session that was to write the handoff to next. A person's order
// counts up to this moment: the tier starts from the verdict then, if the handoff cannot be used.
func (c *chainRun) decideHandoff(ctx workflow.Context, next step, session escalation.Session, problem string) escalation.Decision {
	c.receiveOrders(ctx, next.tier-1)
	var order escalation.Tier
	if c.order != nil && c.mayOrder(ctx, escalation.DecideHandoff(session, problem, next.tier, 0)) {
		order = c.order.ToTier
	}
	decision := escalation.DecideHandoff(session, problem, next.tier, order)
	if problem == "" || session.Status == escalation.SessionStopped {
		return decision
	}
	severity := escalation.SeverityCritical
	if decision.Rule == escalation.RuleResumeFailed || decision.Rule == escalation.RuleTranscriptLost {
		severity = escalation.SeverityWarning // there is nothing that could be wrong
	}
	c.note(ctx, escalation.Event{Kind: escalation.EventHandoff, Severity: severity, SessionID: session.SessionID, Message: problem})
	return decision
}

// describeCalls is tool calls, each in a line.
func describeCalls(calls []activities.ToolCall) []string {
	lines := make([]string, 0, len(calls))
	for _, call := range calls {
		lines = append(lines, clip(strings.Join(strings.Fields(call.Name+": "+call.Input), " ")))
	}
	return lines
}

// handoff is what next starts from: what the tier before has written, or else its verdict. What does
// not fit is left out, and an event says so.
func (c *chainRun) handoff(ctx workflow.Context, next step, opening escalation.Opening) *escalation.Handoff {
	var handoff escalation.Handoff
	if next.handoff != nil {
		handoff = *next.handoff
		handoff.RecommendedTier, handoff.Cooldowns = next.tier, escalation.NewCooldownState(opening.Services)
	} else {
		handoff = escalation.NewHandoff(next.parent.Tier, next.tier, next.parent.Verdict, opening.Services)
	}
	if next.cutOff != nil {
		handoff = handoff.After(*next.cutOff, describeCalls(next.left))
	}
	handoff, dropped := handoff.Fit()
	if dropped != "" {
		c.note(ctx, escalation.Event{
			Kind: escalation.EventHandoff, Severity: escalation.SeverityWarning, SessionID: opening.Session.SessionID, Message: dropped,
		})
	}
	return &handoff
}
