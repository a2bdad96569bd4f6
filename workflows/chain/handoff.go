package chain

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/workflows/parts"
)

// missingFromHandoff returns the fields of a handoff that the previous tier's verdict lacks. The previous tier must
// write these fields before s starts from a handoff. missingFromHandoff returns none in three cases: s starts from no
// handoff, the previous tier was already asked, or that tier cannot be asked. A tier cannot be asked if it exceeds
// the highest tier or has no conversation to resume. A dry run and a recheck ask no tier.
func (c *chainRun) missingFromHandoff(s work) []string {
	choice := c.continuity(s)
	reachable := choice.Reason == escalation.ReasonConfigured || choice.Reason == escalation.ReasonContextPressure
	switch {
	case s.Asked, s.Continues != nil, s.Purpose != escalation.PurposeTier:
		return nil
	case choice.Continuity != escalation.ContinuityHandoff, !reachable:
		return nil
	case s.Parent.ReportedSessionID == "", s.Parent.Unusable != "":
		return nil
	case c.Policy.DryRun, !s.Parent.Tier.Valid(), s.Parent.Tier > c.Policy.MaxTier:
		return nil
	}
	return escalation.MissingFields(s.Parent.Tier, s.Parent.Verdict)
}

// askForHandoff runs a session in which the previous tier writes the handoff for the work s. If the handoff is usable,
// askForHandoff returns a step that runs s with that handoff. If s would not be admitted now, no session runs.
func (c *chainRun) askForHandoff(ctx workflow.Context, s work, missing []string) (step, error) {
	admission, err := c.Sessions.Review(ctx, c.request(s))
	if err != nil {
		return nil, c.abortIfCancelled(ctx, err)
	}
	if !admission.Granted {
		return c.refused(ctx, s, admission)
	}
	opening, err := c.Sessions.Open(ctx, c.request(work{
		Tier: s.Parent.Tier, Purpose: escalation.PurposeHandoff, Parent: s.Parent, Passes: s.Passes,
	}))
	c.Incidents.Send(ctx) // before the session, which can take hours
	if err != nil {
		return nil, c.abortIfCancelled(ctx, err)
	}
	if opening.Refusal != nil {
		return c.refused(ctx, s, *opening.Refusal)
	}
	session, written := c.writeHandoff(ctx, s, opening, missing)
	decision := escalation.Gated(*c.Policy, c.decideHandoff(ctx, s, session, written.Problem))
	// A person may allow the work despite an unusable handoff. It then starts from the verdict.
	s.Asked, s.Handoff = true, written.Handoff
	if session.Treatment().Then == escalation.SequelAnew {
		s.Parent = s.Parent.Disown(session)
	}
	if err := c.conclude(ctx, session, decision); err != nil {
		return nil, err
	}
	switch request := c.Requests.Pending; {
	case decision.Action == escalation.DecisionComplete:
		return nil, nil
	case decision.Action == escalation.DecisionWait:
		s.Asked = false
		return waitStep{s, decision}, nil
	case decision.Action == escalation.DecisionGate:
		return gateOpening{pending{s, true}, decision}, nil
	case request != nil:
		return sessionStep{s.requested(c.Requests.Take())}, nil
	}
	return sessionStep{s}, nil
}

// writeHandoff runs the agent of the previous tier, which writes the handoff for the work s. It returns the ended
// session, and the result of the activity.
func (c *chainRun) writeHandoff(
	ctx workflow.Context, s work, opening escalation.AdmissionResult, missing []string,
) (escalation.Session, activities.WriteHandoffResult) {
	session := opening.Session
	var tiers *activities.Tiers
	var written activities.WriteHandoffResult
	ended, judged := c.Sessions.Run(ctx, session, tiers.WriteHandoff, activities.WriteHandoffInput{
		ChainID:         session.ChainID,
		SessionID:       session.SessionID,
		ParentSessionID: s.Parent.SessionID,
		Tier:            session.Tier,
		Next:            s.Tier,
		Policy:          c.Policy.OfSession(session.Tier),
		Directory:       c.Sessions.Directory,
		Missing:         missing,
		Cooldowns:       opening.Services,
		BudgetUSD:       session.BudgetUSD,
	}, &written)
	if !judged {
		written.Problem = fmt.Sprintf("%s left no handoff: %s", session.Tier, ended.Error)
	}
	return ended, written
}

// decideHandoff returns the decision on the session that wrote the handoff for the work s. It considers a request by a
// person that has arrived by now. If the handoff is unusable, such a request lets s start from the verdict.
func (c *chainRun) decideHandoff(
	ctx workflow.Context, s work, session escalation.Session, problem string,
) escalation.Decision {
	c.Requests.Receive(ctx, s.Tier-1)
	decision := c.Requests.Override(ctx, session, escalation.DecideHandoff(*c.Policy, session, escalation.HandoffInput{
		Next: s.Tier, WaitingSince: c.waitingSince, Problem: problem,
	}))
	if problem == "" || session.Status == escalation.SessionStopped || decision.Rule == escalation.RuleAccountLimit {
		return decision
	}
	severity := escalation.SeverityCritical
	if decision.Rule == escalation.RuleResumeFailed || decision.Rule == escalation.RuleTranscriptLost {
		severity = escalation.SeverityWarning // no handoff was written, so none can be wrong
	}
	c.Log.Add(ctx, escalation.Event{
		Kind: escalation.EventHandoff, Severity: severity, SessionID: session.SessionID,
		Message: problem,
	})
	return decision
}

// describeCalls describes tool calls, one line for each.
func describeCalls(calls []activities.ToolCall) []string {
	lines := make([]string, 0, len(calls))
	for _, call := range calls {
		lines = append(lines, parts.Clip(plaintext.Compact(call.Name+": "+call.Input)))
	}
	return lines
}

// handoff returns the handoff for the work s. If the previous tier has written one, handoff uses that. Otherwise it
// builds one from the verdict of that tier. If the handoff exceeds the size limit, the method drops parts and adds an
// event that names them.
func (c *chainRun) handoff(ctx workflow.Context, s work, opening escalation.AdmissionResult) *escalation.Handoff {
	var handoff escalation.Handoff
	if s.Handoff != nil {
		handoff = *s.Handoff
		handoff.RecommendedTier, handoff.Cooldowns = s.Tier, escalation.NewCooldownState(opening.Services)
	} else {
		handoff = escalation.NewHandoff(s.Parent.Tier, s.Tier, s.Parent.Verdict, opening.Services)
	}
	if s.CutOff != nil {
		handoff = handoff.After(*s.CutOff, describeCalls(s.Left))
	}
	handoff, dropped := handoff.Fit()
	if dropped != "" {
		c.Log.Add(ctx, escalation.Event{
			Kind: escalation.EventHandoff, Severity: escalation.SeverityWarning, SessionID: opening.Session.SessionID,
			Message: dropped,
		})
	}
	return &handoff
}
