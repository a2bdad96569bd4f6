package workflows

import (
	"cmp"
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// stepAction is what a step does.
type stepAction int

// The actions.
const (
	stepEnd      stepAction = iota // nothing: the chain has ended
	stepSession                    // run a session
	stepWait                       // wait until a session that was refused may run
	stepOpenGate                   // open a gate
	stepGate                       // wait at the open gate
)

// step is one step of a chain: a session to run, and where its context comes from, or a wait for what keeps it from running.
type step struct {
	action stepAction
	// decision is why the chain waits, or opens a gate.
	decision escalation.Decision

	tier    escalation.Tier
	purpose escalation.Purpose
	// parent is the session whose conversation or handoff the tier starts from; nil if none.
	parent *escalation.Session
	// resumeFailed and transcriptLost say why the parent's conversation is not resumed: the CLI could not load it, or it is gone.
	resumeFailed, transcriptLost bool
	// cutOff is an earlier session of this step that had begun its work and cannot be resumed; nil if none.
	cutOff *escalation.Session
	// left are the tool calls that cutOff left without a result.
	left []activities.ToolCall
	// handoff is the document that the tier before has written for this one; nil if it was not asked.
	handoff *escalation.Handoff
	// asked says that the tier before was asked for a handoff.
	asked bool
	// minTier is the tier that this recheck stands in for, after a wait; 0 if it is no recheck.
	minTier escalation.Tier
	// request is the person's request that led to this step; nil if none did.
	request *EscalateSignal
	// continues is the interrupted session of this step that a person chose to continue; nil if none.
	continues *escalation.Session
	// refused says that the step has not run, because it was not admitted or its handoff cannot be used.
	refused bool
	// passesCooldown and passesLimit say that a person has let the step pass a cooldown, or the limit of escalations, at a gate.
	passesCooldown, passesLimit bool
}

// firstStep returns the step with which the input says to begin.
func (c *chainRun) firstStep(ctx workflow.Context) (step, error) {
	first := step{action: stepSession, tier: max(c.input.StartTier, escalation.TierObserve)}
	if c.input.Force {
		first.request = &EscalateSignal{ToTier: first.tier, Force: true}
	}
	from := c.input.ResumeFrom
	if from == nil {
		return first, nil
	}
	known, err := c.sessions.find(ctx, from.SessionID)
	switch {
	case err != nil:
		return first, c.abortIfCancelled(ctx, err)
	case known.Found && known.Session.Status == escalation.SessionRunning:
		return first, c.refuse(ctx, fmt.Errorf("resume_from.session_id %s is still running in chain %s",
			from.SessionID, known.Session.ChainID))
	case known.Found:
		first.parent = &known.Session
	default:
		// It has no record to link to, and only its ID is known.
		first.parent = &escalation.Session{
			SessionID: from.SessionID,
			Report:    escalation.Report{ReportedSessionID: from.SessionID},
		}
	}
	return first, nil
}

// checkStart returns why the policy forbids the chain to start; nil if it may.
func checkStart(policy escalation.Policy, input ChainInput) error {
	if policy.Gate.FourEyes && policy.Gate.Timeout > 0 && input.Actor == "" {
		return errors.New("actor is empty: say who starts the chain, because CLAUDEOPS_GATE_FOUR_EYES " +
			"lets somebody else answer at its gates")
	}
	if input.Force && policy.Gate.Restricts() {
		return errors.New("force is not possible: who may pass a cooldown answers at the gate " +
			"(CLAUDEOPS_GATE_APPROVERS, CLAUDEOPS_GATE_FOUR_EYES)")
	}
	if first := max(input.StartTier, escalation.TierObserve); first > policy.MaxTier && input.Trigger != escalation.TriggerIssue {
		return fmt.Errorf("start_tier %d is higher than the highest tier allowed, %d", int(first), int(policy.MaxTier))
	}
	return nil
}

// escalate returns the step that follows session, at a higher tier.
func (s step) escalate(session escalation.Session, tier escalation.Tier, request *EscalateSignal) step {
	return step{action: stepSession, tier: tier, parent: &session, request: request}
}

// handOff returns the same step without the conversation that the failed session could not resume.
func (s step) handOff(failed escalation.Session, left []activities.ToolCall) step {
	lost := failed.Status == escalation.SessionTranscriptLost
	s.resumeFailed, s.transcriptLost = !lost, lost
	if failed.BeganWork() { // it is its own conversation that cannot be resumed
		s.cutOff, s.left = &failed, left
	}
	return s
}

// lookAgain returns the step that follows a wait: a recheck, which finds out cheaply whether s is still needed. It returns s
// itself if a person asked for it, or if it follows no session.
func (s step) lookAgain() step {
	if s.parent == nil || s.request != nil {
		s.action = stepSession
		return s
	}
	return step{action: stepSession, tier: escalation.TierObserve, purpose: escalation.PurposeRecheck, parent: s.parent, minTier: s.tier}
}

// requested returns the step as a person asks for it.
func (s step) requested(request *EscalateSignal) step {
	if s.continues != nil && request.ToTier > s.tier { // no other tier continues that session
		return s.escalate(*s.continues, request.ToTier, request)
	}
	s.action, s.tier, s.request = stepSession, max(s.tier, request.ToTier), request
	return s
}

// forced reports whether a person let the step pass the cooldowns.
func (s step) forced() bool { return s.passesCooldown || s.request != nil && s.request.Force }

// waiting returns the step that waits as the decision says.
func (s step) waiting(decision escalation.Decision) step {
	s.action, s.decision = stepWait, decision
	return s
}

// gated returns the step that opens a gate, because of the decision.
func (s step) gated(decision escalation.Decision) step {
	s.action, s.decision = stepOpenGate, decision
	return s
}

// origin returns the session whose conversation, or whose handoff, the step starts from; nil if none.
func (s step) origin() *escalation.Session { return cmp.Or(s.continues, s.parent) }

// hasRun reports whether the session that ran last is one of this step.
func (s step) hasRun(last *escalation.Session) bool { return !s.refused && last != nil }
