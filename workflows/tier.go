package workflows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// runSession runs the session of a step, if it is admitted. It returns the step that follows.
func (c *chainRun) runSession(ctx workflow.Context, s step) (step, error) {
	if missing := c.missingFromHandoff(s); len(missing) > 0 {
		return c.askForHandoff(ctx, s, missing)
	}
	opening, err := c.sessions.open(ctx, c.request(s))
	c.incidents.send(ctx) // before the session, which can take hours
	if err != nil {
		return step{}, c.abortIfCancelled(ctx, err)
	}
	if opening.Refusal != nil {
		return c.refused(ctx, s, *opening.Refusal)
	}
	s.Refused = false
	session, change := c.runTier(ctx, s, opening)
	if change != nil && change.Problem == "" && change.Commit == change.Base && c.offered() == "" { // nothing new since the push
		change = nil
	}
	c.keep(s, session, change)
	decision := escalation.Gated(*c.policy, c.decide(ctx, s, session))
	if c.mustReview(s, session, change, decision) {
		return c.reviewChange(ctx, s, session, change, decision)
	}
	if err := c.conclude(ctx, session, decision); err != nil {
		return step{}, err
	}
	return c.after(ctx, s, session, decision)
}

// after returns the step that follows s. Its arguments are the session of s and the decision on that session.
func (c *chainRun) after(ctx workflow.Context, s step, session escalation.Session, decision escalation.Decision) (step, error) {
	switch decision.Action {
	case escalation.DecisionComplete:
		return step{}, nil
	case escalation.DecisionEscalate:
		return s.escalate(session, decision.Tier, c.requests.take()), nil
	case escalation.DecisionHandoff:
		return s.handOff(session, c.sessions.inFlight), nil
	case escalation.DecisionWait:
		if session.Repairs() && session.BeganWork() { // it goes on after the limit
			s.Continues, s.Chosen, s.Left = &session, false, c.sessions.inFlight
		}
		return s.waiting(decision), nil
	case escalation.DecisionSplit:
		return step{}, c.split(ctx, session)
	case escalation.DecisionGate:
		if decision.Tier != 0 { // a person decides on a tier that has not run
			s = s.escalate(session, decision.Tier, nil)
			s.Refused = true
		}
		return s.gated(decision), nil
	}
	return step{}, nil
}

// refused returns the step that follows s after its admission was refused.
func (c *chainRun) refused(ctx workflow.Context, s step, refusal escalation.Admission) (step, error) {
	// The step has not run. So a person can request the tier of the step, to skip the rule that refused the step.
	c.requests.receive(ctx, s.Tier-1)
	c.incidents.receive(ctx)
	decision := escalation.Gated(*c.policy, c.decideRefused(s, refusal))
	if c.requests.counts(ctx, decision) {
		return s.requested(c.requests.take()), nil
	}
	s.Refused = true
	return c.stop(ctx, s, decision)
}

// decideRefused returns the decision on a refused step.
func (c *chainRun) decideRefused(s step, refusal escalation.Admission) escalation.Decision {
	decision := escalation.DecideRefused(refusal)
	switch {
	case s.Healed && c.incidents.healed():
		return escalation.ResolvedUnseen(decision)
	case s.Healed && decision.Action == escalation.DecisionComplete: // the fault has come back
		decision.Tier = s.MinTier
		return decision
	}
	return c.quietly(s, decision)
}

// stop returns the step that follows a decision on a step that has not run: a wait, a gate, or the end of the chain.
// stop records the decision, unless the step waits. A later activity records the decision to wait.
func (c *chainRun) stop(ctx workflow.Context, s step, decision escalation.Decision) (step, error) {
	switch {
	case decision.Action == escalation.DecisionWait:
		return s.waiting(decision), nil
	case c.mustSettle(decision):
		if c.proposed.Ending == nil {
			c.proposed.Ending = &decision
		}
		return step{Action: stepReview, Tier: s.Tier, Parent: s.Parent, Refused: s.Refused}, nil
	}
	if err := c.record(ctx, decision); err != nil || decision.Action != escalation.DecisionGate {
		return step{}, err
	}
	if decision.Tier != 0 { // a person decides on decision.Tier, not on a recheck
		s = step{Tier: decision.Tier, Parent: s.Parent, Refused: true}
	}
	return s.gated(decision), nil
}

// request returns the request for the session of a step.
func (c *chainRun) request(s step) sessionRequest {
	return sessionRequest{
		tier: s.Tier, purpose: s.Purpose, context: c.continuity(s), origin: s.origin(), continues: s.Continues != nil,
		force: s.forced(), passes: s.Passes, corrects: s.Corrects || s.goesOn(), waitingSince: c.waitingSince,
	}
}

// continuity chooses how the session of a step gets its context.
func (c *chainRun) continuity(s step) escalation.ContinuityChoice {
	switch {
	case s.Continues == nil || s.Chosen:
	case s.Corrects:
		return escalation.ContinuityChoice{Continuity: escalation.ContinuityResume, Reason: escalation.ReasonCorrection}
	default:
		return escalation.ContinuityChoice{Continuity: escalation.ContinuityResume, Reason: escalation.ReasonInterrupted}
	}
	if s.Purpose == escalation.PurposeHandoff { // only the tier that has the conversation can write its handoff
		return escalation.ContinuityChoice{Continuity: escalation.ContinuityResume, Reason: escalation.ReasonParentSession}
	}
	return escalation.ChooseContinuity(escalation.ContinuityInput{
		Parent:    s.Parent,
		Window:    c.sessions.window(c.policy.For(s.Tier)),
		Threshold: c.policy.ResumeThreshold,
		MaxTokens: c.policy.ResumeMaxTokens,
		Mode:      c.policy.Continuity,
	})
}

// runTier runs the agent of a session and returns the ended session. If the activity fails after all retries, the
// session has the status failed. If the activity was cancelled, the session has the status stopped. runTier also returns
// what the session has committed; nil if it has committed nothing, or nobody asks.
func (c *chainRun) runTier(
	ctx workflow.Context, s step, opening escalation.AdmissionResult,
) (escalation.Session, *activities.Change) {
	session := opening.Session
	input := activities.RunTierInput{
		ChainID:    session.ChainID,
		FirstRunID: session.FirstRunID,
		SessionID:  session.SessionID,
		Tier:       s.Tier,
		Policy:     c.policy.OfSession(s.Tier),
		Services:   c.input.Services, // the operator's limit, which verdicts do not change
		Affected:   c.log.chain.Services,
		Request:    c.input.Prompt,
		Issue:      c.input.Issue,
		Continuity: session.Continuity,
		Directory:  c.sessions.directory,
		Cooldowns:  opening.Services,
		BudgetUSD:  session.BudgetUSD,
		Leave:      c.incidents.left(),
		Inspect:    c.inspects(s),
	}
	input.Incidents, input.Repairs = opening.Incidents, opening.Repairs
	c.based(s, &input)
	if s.Purpose == escalation.PurposeRecheck && s.Continues == nil {
		input.Recheck, input.Services = true, c.log.chain.Services
	}
	if s.Request != nil {
		input.Guidance = s.Request.Guidance
	}
	input.Gate = c.log.chain.GateBefore()
	if origin := s.origin(); origin != nil {
		input.ParentTier, input.ParentSessionID = origin.Tier, origin.SessionID
	}
	if s.Continues != nil {
		input.Continues, input.InFlight = true, c.sessions.inFlight
	}
	if session.Continuity == escalation.ContinuityHandoff {
		input.Handoff = c.handoff(ctx, s, opening)
	}
	var tiers *activities.Tiers
	var result activities.RunTierResult
	ended, judged := c.sessions.run(ctx, session, tiers.RunTier, input, &result)
	if ended.BeganWork() || s.Continues == nil { // otherwise the calls before it still have no result
		c.sessions.inFlight = result.InFlight
	}
	c.listUnknown(ctx, session.SessionID, result.Unknown)
	if !judged && input.Inspect {
		result.Change = &activities.Change{Problem: fmt.Sprintf("nobody knows what the session of %s has committed", s.Tier)}
	}
	return ended, result.Change
}

// decide returns the decision on a session that has ended. It considers a request by a person that has arrived by now.
func (c *chainRun) decide(ctx workflow.Context, s step, session escalation.Session) escalation.Decision {
	recognition := c.incidents.recognize(ctx, s, session)
	c.requests.receive(ctx, session.Tier)
	input := escalation.DecisionInput{
		MinTier: s.MinTier, Healed: s.Healed, Recognition: recognition, WaitingSince: c.waitingSince,
		NoSplit: c.log.chain.Trigger == escalation.TriggerIssue || s.Purpose == escalation.PurposeRecheck || c.unpushed(),
	}
	return c.quietly(s, c.requests.override(ctx, session, escalation.Decide(*c.policy, session, input)))
}

// quietly returns the decision on the session of a step that has ended or was refused. If the step is a scheduled look, nobody needs to
// act because of a limit that passes.
func (c *chainRun) quietly(s step, decision escalation.Decision) escalation.Decision {
	first := c.log.chain.Last() == nil || decision.Rule == escalation.RuleAccountLimit && s.Purpose == escalation.PurposeTier
	if c.log.chain.Trigger == escalation.TriggerScheduled && s.Tier == escalation.TierObserve && first {
		return escalation.QuietIfSpent(decision)
	}
	return decision
}

// conclude records the end of a session and the decision on that session. If another session follows, the activity
// that opens that session records this end, too.
func (c *chainRun) conclude(ctx workflow.Context, session escalation.Session, decision escalation.Decision) error {
	c.sessions.ended(ctx, session)
	return c.settle(ctx, session, &session, decision)
}

// settle records the decision on a session that has ended, and the end of the session unclosed; nil if every end is recorded.
func (c *chainRun) settle(
	ctx workflow.Context, session escalation.Session, unclosed *escalation.Session, decision escalation.Decision,
) error {
	if decision.Action != escalation.DecisionComplete {
		c.incidents.outdate(ctx, session)
	}
	c.incidents.leave(ctx, session, decision)
	c.decided(ctx, decision)
	if unclosed == nil {
		return c.log.record(ctx, "record the decision", releases(decision))
	}
	if decision.Action == escalation.DecisionEscalate || decision.Action == escalation.DecisionHandoff {
		c.sessions.closeWithNext(*unclosed) // opening the next session publishes
		return nil
	}
	if err := c.sessions.close(ctx, *unclosed, releases(decision)); err != nil {
		return err
	}
	return c.log.publish(ctx)
}

// record records a decision that does not follow a session, such as the decision on a refused step. A cancelled chain does not wait
// for the database.
func (c *chainRun) record(ctx workflow.Context, decision escalation.Decision) error {
	c.decided(ctx, decision)
	return c.log.recordUnlessCancelled(ctx, "record the decision", releases(decision))
}

// releases reports whether the chain unlocks its services when it records decision. It does so at a gate and at its
// end. For a wait, the method sleep unlocks them.
func releases(decision escalation.Decision) bool {
	return decision.Action == escalation.DecisionComplete || decision.Action == escalation.DecisionGate
}

// decided updates the visible state with a decision. If the decision blocks the chain, it also notifies people.
func (c *chainRun) decided(ctx workflow.Context, decision escalation.Decision) {
	if decision.Action == escalation.DecisionComplete {
		c.gates.receiveReplies(ctx) // refuses answers to a gate that never opened
	}
	c.log.decided(ctx, decision)
	c.log.progress = c.incidents.progress(ctx, decision)
	kind, blocked := blockedBy(decision.Rule)
	switch {
	case !blocked:
	case decision.Outcome == escalation.OutcomeNeedsHuman:
		c.people.notify(ctx, kind, decision.Reason)
	case decision.Rule == escalation.RuleAccountLimit && decision.Action == escalation.DecisionComplete:
		c.people.notifyOfLimit(ctx, decision)
	case decision.Rule == escalation.RuleDayBudget && decision.Outcome == escalation.OutcomeSuppressed:
		c.people.notifyOnceADay(ctx, kind, decision.Reason)
	}
	if decision.Action == escalation.DecisionComplete {
		c.log.ended(ctx, decision)
	}
}

// openGate opens a gate for a step whose session has ended or was refused. The decision of the step gives the reason
// for the gate.
func (c *chainRun) openGate(ctx workflow.Context, s step) (step, error) {
	request := gateRequest{decision: s.Decision, tier: s.Tier, refused: s.Refused, stopped: c.stopped(s), commit: c.offered()}
	if request.commit != "" {
		request.open, request.noRemote = c.proposed.Loop.Unsolved(), c.proposed.Change.NoRemote
	}
	request.decision.Reason = c.tell(request.decision.Reason)
	opened, err := c.gates.open(ctx, request)
	if err != nil {
		return step{}, err
	}
	if !opened {
		return step{}, c.record(ctx, escalation.Cancelled())
	}
	c.parent.detach(ctx)
	s.Action = stepGate
	return s, nil
}

// tell adds to the reason of a gate what nobody has seen of the commits of the chain.
func (c *chainRun) tell(reason string) string {
	if c.proposed == nil {
		return reason
	}
	for _, work := range c.proposed.Unseen {
		if !strings.Contains(reason, work.Why) {
			reason += "; " + work.Why
		}
	}
	return reason
}

// told notes that a person has answered at the gate that has said what nobody has seen.
func (c *chainRun) told(answer escalation.GateClosing) {
	if c.proposed == nil || answer.Actor == "" && answer.ToTier == 0 {
		return
	}
	for i := range c.proposed.Unseen {
		c.proposed.Unseen[i].Told = true
	}
}

// waitAtGate waits at the open gate of a step. It returns the step that the answer chose. The returned step still needs
// its own admission.
func (c *chainRun) waitAtGate(ctx workflow.Context, s step) (step, error) {
	last := s.Tier
	if !s.hasRun(c.log.chain.Worked()) {
		last-- // the step has not run, so a person may request the same tier
	}
	closed, err := c.gates.wait(ctx, last)
	if err != nil {
		return step{}, err
	}
	if !closed {
		return step{}, c.continueAsNew(ctx, s)
	}
	return c.afterGate(ctx, s)
}

// afterGate returns the step that follows s. The answer at its gate chooses this step.
func (c *chainRun) afterGate(ctx workflow.Context, s step) (step, error) {
	c.waitingSince = time.Time{} // the maximum wait starts again after a person's decision
	if err := c.gates.renewLimits(ctx); err != nil {
		return step{}, c.abortIfCancelled(ctx, err)
	}
	gate := c.gates.latest()
	c.told(*gate.Answer)
	if gate.Answer.Action == escalation.GateRecheck {
		var ran *escalation.Session
		if s.hasRun(c.log.chain.Worked()) {
			session := *c.log.chain.Worked()
			ran = &session
		}
		return c.checkHealed(s, ran), c.log.publish(ctx)
	}
	about := gate.Rule == escalation.RuleReview || gate.Answer.Action == escalation.GateOverride && c.unpushed()
	if c.proposed != nil && about && !gate.Answer.Cancelled && gate.Answer.ToTier == 0 {
		return c.afterReviewGate(ctx, s, gate)
	}
	decision, ends := gate.Ending(*gate.Answer)
	if ends {
		return step{}, c.record(ctx, decision)
	}
	return c.stepFrom(s, gate), c.log.publish(ctx)
}

// checkHealed returns the step that follows s after other chains have found all incidents healed. The parameter last is
// the latest session, if that session belongs to s; nil if not. A look that failed has found nothing that a recheck
// could check, so the chain looks anew.
func (c *chainRun) checkHealed(s step, last *escalation.Session) step {
	if c.incidents.onlyFailedLooks() {
		return s.lookAnew()
	}
	return s.checkHealed(last)
}

// stepFrom returns the step that follows s after its gate was closed. The answer in gate selects this step.
func (c *chainRun) stepFrom(s step, gate *escalation.Gate) step {
	closing, last := *gate.Answer, c.log.chain.Worked()
	s.Action = stepSession
	if s.hasRun(last) {
		s.Passes = nil
		if closing.ToTier != 0 {
			return s.escalate(*last, closing.ToTier, c.requests.take())
		}
	}
	s.Refused = false
	if closing.ToTier != 0 {
		return s.requested(c.requests.take())
	}
	s.Continues, s.Request, s.Chosen = nil, nil, false
	if gate.Fresh {
		s.Parent = nil
	}
	if closing.Actor != "" {
		s.Request = &EscalateSignal{ToTier: s.Tier, Guidance: closing.Guidance}
		s.Passes = append(slices.Clone(s.Passes), gate.Allows()...)
	}
	if closing.Action == escalation.GateContinue {
		continued := *c.log.chain.Session(gate.Continuation.SessionID)
		s.Continues, s.Chosen = &continued, true
	}
	return s
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
