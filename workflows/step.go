package workflows

import (
	"cmp"
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// step is one session to run, and where its context comes from.
type step struct {
	tier    escalation.Tier
	purpose escalation.Purpose
	// parent is the session whose context the tier continues; nil if none.
	parent *escalation.Session
	// resumeFailed and transcriptLost say why the parent's conversation is not tried again: it
	// could not be loaded, or it is gone.
	resumeFailed, transcriptLost bool
	// cutOff is a session of this very tier that had begun its work and cannot go on; nil if none.
	cutOff *escalation.Session
	// left are the tool calls that cutOff left without a result.
	left []activities.ToolCall
	// handoff is what the tier before has written for this one; nil if it was not asked.
	handoff *escalation.Handoff
	// asked says that the tier before was asked for its handoff.
	asked bool
	// floor is the tier that was to run before the chain waited and looks again; 0 if it did not.
	floor escalation.Tier
	// order is what a person said when asking for this step; nil if nobody did.
	order *EscalateSignal
	// continues is the interrupted session of this very step that it goes on with; nil if none.
	continues *escalation.Session
	// refused says that the step has not run: it was not admitted, or the handoff to it cannot be
	// used.
	refused bool
	// passesCooldown and passesLimit say that a person has decided at a gate to take the step although
	// a cooldown, or the limit of escalations, objects.
	passesCooldown, passesLimit bool
}

// firstStep is where the input says to begin.
func (c *chainRun) firstStep(ctx workflow.Context) (step, error) {
	first := step{tier: max(c.input.StartTier, escalation.TierObserve)}
	if c.input.Force {
		first.order = &EscalateSignal{ToTier: first.tier, Force: true}
	}
	from := c.input.ResumeFrom
	if from == nil {
		return first, nil
	}
	known, err := c.findSession(ctx, from.SessionID)
	switch {
	case err != nil:
		return first, err
	case known.Found && known.Session.Status == escalation.SessionRunning:
		return first, c.refuse(ctx, fmt.Errorf("resume_from.session_id %s is still running in chain %s",
			from.SessionID, known.Session.ChainID))
	case known.Found:
		first.parent = &known.Session
	default:
		// It has no record to link to, and nothing is known of it but its id.
		first.parent = &escalation.Session{
			SessionID: from.SessionID,
			Report:    escalation.Report{ReportedSessionID: from.SessionID},
		}
	}
	return first, nil
}

// findSession looks up what is recorded about a conversation.
func (c *chainRun) findSession(ctx workflow.Context, sessionID string) (activities.FindSessionResult, error) {
	var known activities.FindSessionResult
	if workflow.GetVersion(ctx, changeLookUp, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return known, nil
	}
	var records *activities.Records
	err := workflow.ExecuteActivity(withRecords(ctx, "look up the conversation to resume"), records.FindSession, sessionID).Get(ctx, &known)
	return known, err
}

// checkStart refuses a chain that its policy forbids to start.
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

// escalate is the step after session, to a higher tier.
func (s step) escalate(session escalation.Session, tier escalation.Tier, order *EscalateSignal) step {
	return step{tier: tier, parent: &session, order: order}
}

// handOff is the same step again, without the conversation that failed session was to go on from.
func (s step) handOff(failed escalation.Session, left []activities.ToolCall) step {
	lost := failed.Status == escalation.SessionTranscriptLost
	s.resumeFailed, s.transcriptLost = !lost, lost
	if failed.BeganWork() { // it was its own conversation that did not go on
		s.cutOff, s.left = &failed, left
	}
	return s
}

// lookAgain is the step that finds out, cheaply, whether s is still needed after a wait. What a
// person asked for is needed, and so is what continues nothing.
func (s step) lookAgain() step {
	if s.parent == nil || s.order != nil {
		return s
	}
	return step{tier: escalation.TierObserve, purpose: escalation.PurposeRecheck, parent: s.parent, floor: s.tier}
}

// ordered is the step as a person asks for it.
func (s step) ordered(order *EscalateSignal) step {
	if s.continues != nil && order.ToTier > s.tier { // no other tier goes on with that session
		return s.escalate(*s.continues, order.ToTier, order)
	}
	s.tier, s.order = max(s.tier, order.ToTier), order
	return s
}

// forced reports whether a person passed the cooldowns for this step.
func (s step) forced() bool { return s.passesCooldown || s.order != nil && s.order.Force }

// origin is the session whose conversation, or whose handoff, the step begins with; nil if none.
func (s step) origin() *escalation.Session { return cmp.Or(s.continues, s.parent) }

// hasRun reports whether last, the session that ran last, is one of this step.
func (s step) hasRun(last *escalation.Session) bool { return !s.refused && last != nil }
