package chain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows/parts"
)

// do runs a session, if it is admitted. It returns the step that follows.
func (next sessionStep) do(ctx workflow.Context, c *chainRun) (step, error) {
	s := next.work
	if missing := c.missingFromHandoff(s); len(missing) > 0 {
		return c.askForHandoff(ctx, s, missing)
	}
	opening, err := c.Sessions.Open(ctx, c.request(s))
	c.Incidents.Send(ctx) // before the session, which can take hours
	if err != nil {
		return nil, c.abortIfCancelled(ctx, err)
	}
	if opening.Refusal != nil {
		return c.refused(ctx, s, *opening.Refusal)
	}
	session, change := c.runTier(ctx, s, opening)
	// nothing new since the push
	if change != nil && change.Problem == "" && change.Commit == change.Base && c.offered() == "" {
		change = nil
	}
	c.keep(s, session, change)
	decision := escalation.Gated(*c.Policy, c.decide(ctx, s, session))
	if c.mustReview(s, session, change, decision) {
		return c.reviewChange(ctx, s, session, change, decision)
	}
	if err := c.conclude(ctx, session, decision); err != nil {
		return nil, err
	}
	return c.after(ctx, pending{work: s}, session, decision)
}

// after returns the step that follows s. Its arguments are the session of s and the decision on that session.
func (c *chainRun) after(
	ctx workflow.Context, s pending, session escalation.Session, decision escalation.Decision,
) (step, error) {
	switch decision.Action {
	case escalation.DecisionComplete:
		return nil, nil
	case escalation.DecisionEscalate:
		return sessionStep{escalate(session, decision.Tier, c.Requests.Take())}, nil
	case escalation.DecisionHandoff:
		return sessionStep{s.handOff(session, c.Sessions.InFlight)}, nil
	case escalation.DecisionWait:
		if session.Repairs() && session.BeganWork() { // it goes on after the limit
			s.Continues, s.Chosen, s.Left = &session, false, c.Sessions.InFlight
		}
		return waitStep{s.work, decision}, nil
	case escalation.DecisionSplit:
		return nil, c.split(ctx, session)
	case escalation.DecisionGate:
		if decision.Tier != 0 { // a person decides on a tier that has not run
			s = pending{escalate(session, decision.Tier, nil), true}
		}
		return gateOpening{s, decision}, nil
	}
	return nil, nil
}

// refused returns the step that follows s after its admission was refused.
func (c *chainRun) refused(ctx workflow.Context, s work, refusal escalation.Admission) (step, error) {
	// The step has not run. So a person can request the tier of the step, to skip the rule that refused the step.
	c.Requests.Receive(ctx, s.Tier-1)
	c.Incidents.Receive(ctx)
	decision := escalation.Gated(*c.Policy, c.decideRefused(s, refusal))
	if c.Requests.Counts(ctx, decision) {
		return sessionStep{s.requested(c.Requests.Take())}, nil
	}
	return c.stop(ctx, pending{s, true}, decision)
}

// decideRefused returns the decision on a refused step.
func (c *chainRun) decideRefused(s work, refusal escalation.Admission) escalation.Decision {
	decision := escalation.DecideRefused(refusal)
	switch {
	case s.Healed && c.Incidents.Healed():
		return escalation.ResolvedUnseen(decision)
	case s.Healed && decision.Action == escalation.DecisionComplete: // the fault has come back
		decision.Tier = s.MinTier
		return decision
	}
	return c.quietly(s, decision)
}

// stop returns the step that follows a decision on work that has not run: a wait, a gate, or the end of the chain.
// stop records the decision, unless the chain waits. A later activity records the decision to wait.
func (c *chainRun) stop(ctx workflow.Context, s pending, decision escalation.Decision) (step, error) {
	switch {
	case decision.Action == escalation.DecisionWait:
		return waitStep{s.work, decision}, nil
	case c.mustSettle(decision):
		if c.proposed.Ending == nil {
			c.proposed.Ending = &decision
		}
		return reviewStep{pending{work{Tier: s.Tier, Parent: s.Parent}, s.Refused}}, nil
	}
	if err := c.record(ctx, decision); err != nil || decision.Action != escalation.DecisionGate {
		return nil, err
	}
	if decision.Tier != 0 { // a person decides on decision.Tier, not on a recheck
		s = pending{work{Tier: decision.Tier, Parent: s.Parent}, true}
	}
	return gateOpening{s, decision}, nil
}

// request returns the request for a session.
func (c *chainRun) request(s work) parts.SessionRequest {
	return parts.SessionRequest{
		Tier: s.Tier, Purpose: s.Purpose, Context: c.continuity(s), Origin: s.origin(), Continues: s.Continues != nil,
		Force: s.forced(), Passes: s.Passes, Corrects: s.Corrects || s.goesOn(), WaitingSince: c.waitingSince,
	}
}

// continuity chooses how a session gets its context.
func (c *chainRun) continuity(s work) escalation.ContinuityChoice {
	switch {
	case s.Continues == nil || s.Chosen:
	case s.Corrects:
		return escalation.ContinuityChoice{Continuity: escalation.ContinuityResume, Reason: escalation.ReasonCorrection}
	default:
		return escalation.ContinuityChoice{
			Continuity: escalation.ContinuityResume,
			Reason:     escalation.ReasonInterrupted,
		}
	}
	if s.Purpose == escalation.PurposeHandoff { // only the tier that has the conversation can write its handoff
		return escalation.ContinuityChoice{
			Continuity: escalation.ContinuityResume,
			Reason:     escalation.ReasonParentSession,
		}
	}
	return escalation.ChooseContinuity(escalation.ContinuityInput{
		Parent:    s.Parent,
		Window:    c.Sessions.Window(c.Policy.For(s.Tier)),
		Threshold: c.Policy.ResumeThreshold,
		MaxTokens: c.Policy.ResumeMaxTokens,
		Mode:      c.Policy.Continuity,
	})
}

// runTier runs the agent of a session and returns the ended session. If the activity fails after all retries, the
// session has the status failed. If the activity was cancelled, the session has the status stopped. runTier also
// returns what the session has committed; nil if it has committed nothing, or nobody asks.
func (c *chainRun) runTier(
	ctx workflow.Context, s work, opening escalation.AdmissionResult,
) (escalation.Session, *activities.Change) {
	session := opening.Session
	input := activities.RunTierInput{
		ChainID:    session.ChainID,
		FirstRunID: session.FirstRunID,
		SessionID:  session.SessionID,
		Tier:       s.Tier,
		Policy:     c.Policy.OfSession(s.Tier),
		Services:   c.input.Services, // the operator's limit, which verdicts do not change
		Affected:   c.Log.Chain.Services,
		Request:    c.input.Prompt,
		Issue:      c.input.Issue,
		Alert:      c.input.Alert,
		Continuity: session.Continuity,
		Directory:  c.Sessions.Directory,
		Cooldowns:  opening.Services,
		BudgetUSD:  session.BudgetUSD,
		Leave:      c.Incidents.Left(),
		Inspect:    c.inspects(s),
	}
	input.Incidents, input.Repairs = opening.Incidents, opening.Repairs
	c.based(s, &input)
	if s.Purpose == escalation.PurposeRecheck && s.Continues == nil {
		input.Recheck, input.Services = true, c.Log.Chain.Services
	}
	if s.Request != nil {
		input.Guidance = s.Request.Guidance
	}
	input.Gate = c.Log.Chain.GateBefore()
	if origin := s.origin(); origin != nil {
		input.ParentTier, input.ParentSessionID = origin.Tier, origin.SessionID
	}
	if s.Continues != nil {
		input.Continues, input.InFlight = true, c.Sessions.InFlight
	}
	if session.Continuity == escalation.ContinuityHandoff {
		input.Handoff = c.handoff(ctx, s, opening)
	}
	var tiers *activities.Tiers
	var result activities.RunTierResult
	ended, judged := c.Sessions.Run(ctx, session, tiers.RunTier, input, &result)
	if ended.BeganWork() || s.Continues == nil { // otherwise the calls before it still have no result
		c.Sessions.InFlight = result.InFlight
	}
	c.listUnknown(ctx, session.SessionID, result.Unknown)
	if !judged && input.Inspect {
		result.Change = &activities.Change{Problem: fmt.Sprintf("nobody knows what the session of %s has committed",
			s.Tier)}
	}
	return ended, result.Change
}

// decide returns the decision on a session that has ended. It considers a request by a person that has arrived by now.
func (c *chainRun) decide(ctx workflow.Context, s work, session escalation.Session) escalation.Decision {
	// A recheck of a report that the incidents have healed is no look: this chain keeps its incidents.
	mine := s.forced() || s.Healed && session.Purpose == escalation.PurposeRecheck
	recognition := c.Incidents.Recognize(ctx, session, mine)
	c.Requests.Receive(ctx, session.Tier)
	input := escalation.DecisionInput{
		MinTier: s.MinTier, Healed: s.Healed, Recognition: recognition, WaitingSince: c.waitingSince,
		NoSplit: c.Log.Chain.Trigger == escalation.TriggerIssue || s.Purpose == escalation.PurposeRecheck ||
			c.unpushed(),
	}
	return c.quietly(s, c.Requests.Override(ctx, session, escalation.Decide(*c.Policy, session, input)))
}

// quietly returns the decision on a session that has ended or was refused. If it is a scheduled look, nobody needs to
// act because of a limit that passes.
func (c *chainRun) quietly(s work, decision escalation.Decision) escalation.Decision {
	first := c.Log.Chain.Last() == nil || decision.Rule == escalation.RuleAccountLimit &&
		s.Purpose == escalation.PurposeTier
	if c.Log.Chain.Trigger == escalation.TriggerScheduled && s.Tier == escalation.TierObserve && first {
		return escalation.QuietIfSpent(decision)
	}
	return decision
}

// conclude records the end of a session and the decision on that session. If another session follows, the activity
// that opens that session records this end, too.
func (c *chainRun) conclude(ctx workflow.Context, session escalation.Session, decision escalation.Decision) error {
	c.Sessions.Ended(ctx, session)
	return c.settle(ctx, session, &session, decision)
}

// settle records the decision on a session that has ended, and the end of the session unclosed; nil if every end is
// recorded.
func (c *chainRun) settle(
	ctx workflow.Context, session escalation.Session, unclosed *escalation.Session, decision escalation.Decision,
) error {
	if decision.Action != escalation.DecisionComplete {
		c.Incidents.Outdate(ctx, session)
	}
	c.Incidents.Leave(ctx, session, decision)
	c.decided(ctx, decision)
	if unclosed == nil {
		return c.Log.Record(ctx, "record the decision", releases(decision))
	}
	if decision.Action == escalation.DecisionEscalate || decision.Action == escalation.DecisionHandoff {
		c.Sessions.CloseWithNext(*unclosed) // opening the next session publishes
		return nil
	}
	closing := func() error { return c.Sessions.Close(ctx, *unclosed, releases(decision)) }
	if decision.Action == escalation.DecisionGate {
		closing = func() error { return c.Sessions.CloseForGate(ctx, *unclosed) }
	}
	if err := closing(); err != nil {
		return err
	}
	return c.Log.Publish(ctx)
}

// record records a decision that does not follow a session, such as the decision on a refused session. A cancelled
// chain does not wait for the database.
func (c *chainRun) record(ctx workflow.Context, decision escalation.Decision) error {
	c.decided(ctx, decision)
	return c.Log.RecordUnlessCancelled(ctx, "record the decision", releases(decision))
}

// releases reports whether the chain unlocks its services when it records decision. It does so at a gate and at its
// end. For a wait, the method sleep unlocks them.
func releases(decision escalation.Decision) bool {
	return decision.Action == escalation.DecisionComplete || decision.Action == escalation.DecisionGate
}

// decided updates the visible state with a decision. If the decision blocks the chain, it also notifies people.
func (c *chainRun) decided(ctx workflow.Context, decision escalation.Decision) {
	if decision.Action == escalation.DecisionComplete {
		c.Gates.ReceiveReplies(ctx) // refuses answers to a gate that never opened
	}
	c.Log.Decided(ctx, decision)
	c.Log.Progress = c.Incidents.Progress(ctx, decision)
	kind, blocked := parts.BlockedBy(decision.Rule)
	switch {
	case !blocked:
	case decision.Outcome == escalation.OutcomeNeedsHuman:
		c.People.Notify(ctx, kind, decision.Reason)
	case decision.Rule == escalation.RuleAccountLimit && decision.Action == escalation.DecisionComplete:
		c.People.NotifyOfLimit(ctx, decision)
	case decision.Rule == escalation.RuleDayBudget && decision.Outcome == escalation.OutcomeSuppressed:
		c.People.NotifyOnceADay(ctx, kind, decision.Reason)
	}
	if decision.Action == escalation.DecisionComplete {
		c.Log.Ended(ctx, decision)
	}
}

// do opens a gate about a session that has ended or was refused.
func (s gateOpening) do(ctx workflow.Context, c *chainRun) (step, error) {
	request := parts.GateRequest{
		Decision: s.decision, Tier: s.Tier, Refused: s.Refused, Stopped: c.stopped(s),
		Commit: c.offered(),
	}
	if request.Commit != "" {
		request.Open, request.NoRemote = c.proposed.Loop.Unsolved(), c.proposed.Change.NoRemote
	}
	request.Decision.Reason = c.tell(request.Decision.Reason)
	opened, err := c.Gates.Open(ctx, request)
	if err != nil {
		return nil, err
	}
	if !opened {
		return nil, c.record(ctx, escalation.Cancelled())
	}
	c.parent.Detach(ctx)
	return gateStep{s.pending}, nil
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

// do waits at the open gate. It returns the step that the answer chose. The session of that step still needs its own
// admission.
func (s gateStep) do(ctx workflow.Context, c *chainRun) (step, error) {
	last := s.Tier
	if !s.hasRun(c.Log.Chain.Worked()) {
		last-- // the work has not run, so a person may request the same tier
	}
	closed, err := c.Gates.Wait(ctx, last)
	if err != nil {
		return nil, err
	}
	if !closed {
		return nil, c.continueAsNew(ctx, s)
	}
	return c.afterGate(ctx, s.pending)
}

// afterGate returns the step that follows s. The answer at its gate chooses this step.
func (c *chainRun) afterGate(ctx workflow.Context, s pending) (step, error) {
	c.waitingSince = time.Time{} // the maximum wait starts again after a person's decision
	if err := c.Gates.RenewLimits(ctx); err != nil {
		return nil, c.abortIfCancelled(ctx, err)
	}
	gate := c.Gates.Latest()
	c.told(*gate.Answer)
	if gate.Answer.Action == escalation.GateRecheck {
		var ran *escalation.Session
		if s.hasRun(c.Log.Chain.Worked()) {
			session := *c.Log.Chain.Worked()
			ran = &session
		}
		look := c.checkHealed(s.work, ran)
		if closing := gate.Answer; closing.Actor != "" {
			look.Request = &parts.EscalateSignal{ToTier: look.Tier, Guidance: repaired(closing.Guidance)}
		}
		return sessionStep{look}, c.Log.Publish(ctx)
	}
	about := gate.Rule == escalation.RuleReview || gate.Answer.Action == escalation.GateOverride && c.unpushed()
	if c.proposed != nil && about && !gate.Answer.Cancelled && gate.Answer.ToTier == 0 {
		return c.afterReviewGate(ctx, s, gate)
	}
	decision, ends := gate.Ending(*gate.Answer)
	if ends {
		return nil, c.record(ctx, decision)
	}
	next := c.workFrom(s, gate)
	if next.Tier > c.Policy.MaxTier {
		decision := escalation.Gated(*c.Policy, escalation.DecideNotRaised(*c.Policy, next.Tier))
		return c.stop(ctx, pending{next, true}, decision)
	}
	return sessionStep{next}, c.Log.Publish(ctx)
}

// repaired tells the agent that looks again that a person has repaired what was wrong, and the person's words.
func repaired(guidance string) string {
	return strings.TrimSpace("A person says that it is repaired, and asks you to look whether it is. " + guidance)
}

// checkHealed returns the work that follows s after other chains have found all incidents healed. The parameter last is
// the latest session, if that session belongs to s; nil if not. A look that failed has found nothing that a recheck
// could check, and no recheck goes on in a conversation that cannot be used: the chain looks anew.
func (c *chainRun) checkHealed(s work, last *escalation.Session) work {
	if last != nil && last.Verdict == nil && !last.Treatment().Continues {
		last = nil
	}
	if c.Incidents.OnlyFailedLooks() || last == nil && s.Parent == nil {
		return s.lookAnew()
	}
	return s.checkHealed(last)
}

// workFrom returns the work that follows s after its gate was closed. The answer in gate selects it.
func (c *chainRun) workFrom(at pending, gate *escalation.Gate) work {
	closing, last, s := *gate.Answer, c.Log.Chain.Worked(), at.work
	if at.hasRun(last) {
		s.Passes = nil
		if closing.ToTier != 0 {
			return escalate(*last, closing.ToTier, c.Requests.Take())
		}
	}
	if closing.ToTier != 0 {
		return s.requested(c.Requests.Take())
	}
	s.Continues, s.Request, s.Chosen = nil, nil, false
	if gate.Fresh {
		s.Parent = nil
	}
	if closing.Actor != "" {
		s.Request = &parts.EscalateSignal{ToTier: s.Tier, Guidance: closing.Guidance}
		s.Passes = append(slices.Clone(s.Passes), gate.Allows()...)
	}
	if closing.Action == escalation.GateContinue {
		continued := *c.Log.Chain.Session(gate.Continuation.SessionID)
		s.Continues, s.Chosen = &continued, true
	}
	return s
}
