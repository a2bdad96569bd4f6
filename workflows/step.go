package workflows

import (
	"cmp"
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// stepAction is the kind of a step.
type stepAction int

// The kinds of steps.
const (
	stepEnd      stepAction = iota // nothing: the chain has ended
	stepSession                    // run a session
	stepWait                       // wait until a refused session may run
	stepOpenGate                   // open a gate
	stepGate                       // wait at the open gate
	stepReview                     // review a change again
)

// step is one step of a chain: a session, a wait or a gate. The step of a wait or a gate also describes the session
// that can follow it.
type step struct {
	action stepAction
	// decision is the decision that makes the chain wait or open a gate.
	decision escalation.Decision

	tier    escalation.Tier
	purpose escalation.Purpose
	// parent is the session that provides the conversation or the handoff for the tier; nil if there is none. If its conversation
	// could not be used, parent says so, and every step after this one knows it.
	parent *escalation.Session
	// cutOff is an earlier session of this step that had begun its work and cannot be resumed; nil if no session was
	// cut off.
	cutOff *escalation.Session
	// left holds the tool calls that had no result when the session in cutOff or continues ended.
	left []activities.ToolCall
	// handoff is the document that the previous tier has written for this step; nil if there is none.
	handoff *escalation.Handoff
	// asked reports whether the previous tier was asked for a handoff.
	asked bool
	// minTier is the lowest tier to which this recheck may escalate, which is the tier of the step that waited for
	// the recheck. It is 0 if the step is no recheck.
	minTier escalation.Tier
	// request is the person's request that led to this step; nil if there was none.
	request *EscalateSignal
	// continues is the session that this step continues; nil if there is none. chosen reports that a person chose so at a
	// gate, because the session was interrupted. Otherwise an author continues its own session to correct its change, or a
	// tier its own that the limit of the account has cut off.
	continues *escalation.Session
	chosen    bool
	// corrects reports that the session of this step corrects the change of the chain, after a review or a gate of it.
	corrects bool
	// healed reports that this step follows news from other chains: they have found the incidents healed. The step is a
	// recheck, which verifies that, or the first look once more (see lookAnew).
	healed bool
	// refused reports that the step has not run, either because its admission was refused or because its handoff is
	// unusable.
	refused bool
	// passes lists the rules that a person at a gate has allowed the step to pass.
	passes []escalation.Rule
}

// firstStep returns the first step of the chain, as the chain's input defines it.
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
		return first, c.log.refuse(ctx, fmt.Errorf("resume_from.session_id %s is still running in chain %s",
			from.SessionID, known.Session.ChainID))
	case known.Found && known.Session.Purpose == escalation.PurposeTalk:
		return first, c.log.refuse(ctx, fmt.Errorf("resume_from.session_id %s belongs to %s, "+
			"and chains do not continue conversations of people", from.SessionID, known.Session.ChainID))
	case known.Found:
		first.parent = &known.Session
	default:
		// The conversation has no record, so only its ID is known.
		first.parent = &escalation.Session{
			SessionID: from.SessionID,
			Report:    escalation.Report{ReportedSessionID: from.SessionID},
		}
	}
	return first, nil
}

// checkActor returns an error if nobody says who starts the chain, and somebody else must answer at its gates.
func checkActor(policy escalation.Policy, actor string) error {
	if policy.Gate.FourEyes && policy.Gate.Timeout > 0 && actor == "" {
		return errors.New("actor is empty: say who starts the chain, because CLAUDEOPS_GATE_FOUR_EYES " +
			"lets somebody else answer at its gates")
	}
	return nil
}

// checkStart returns the reason why the policy forbids the chain. If the chain may start, checkStart returns nil.
func checkStart(policy escalation.Policy, input ChainInput) error {
	if err := checkActor(policy, input.Actor); err != nil {
		return err
	}
	if input.Force && policy.Gate.Restricts() {
		return errors.New("force is not possible: who may pass a cooldown answers at the gate " +
			"(CLAUDEOPS_GATE_APPROVERS, CLAUDEOPS_GATE_FOUR_EYES, CLAUDEOPS_GATE_REQUIRE_VERIFIED)")
	}
	if first := max(input.StartTier, escalation.TierObserve); first > policy.MaxTier && input.Trigger != escalation.TriggerIssue {
		return fmt.Errorf("start_tier %d is higher than the highest tier allowed, %d", int(first), int(policy.MaxTier))
	}
	return nil
}

// escalate returns a step at a higher tier, which follows session.
func (s step) escalate(session escalation.Session, tier escalation.Tier, request *EscalateSignal) step {
	return step{action: stepSession, tier: tier, parent: &session, request: request}
}

// handOff returns s with a handoff instead of a resumed conversation. The argument failed is the session that could
// not resume the conversation, or was refused in it. The argument left holds the tool calls of that session that have no result.
func (s step) handOff(failed escalation.Session, left []activities.ToolCall) step {
	s.parent = s.parent.Disown(failed)
	switch {
	case failed.BeganWork() || failed.Ending == escalation.EndingRefused: // failed has lost its own conversation, not its parent's
		s.cutOff, s.left = &failed, left
	case s.continues != nil && !s.corrects: // the work of that session cannot be continued
		s.cutOff = s.continues
	}
	s.continues = nil
	return s
}

// lookAgain returns the step that follows a wait of s. Normally this is a recheck, which finds out at low cost
// whether s is still needed. In five cases lookAgain returns s itself: a person requested s, s follows no session,
// s corrects a change, s continues unfinished work, or s is a recheck.
func (s step) lookAgain() step {
	if s.parent == nil || s.request != nil || s.corrects || s.continues != nil || s.purpose == escalation.PurposeRecheck {
		s.action = stepSession
		return s
	}
	return step{action: stepSession, tier: escalation.TierObserve, purpose: escalation.PurposeRecheck, parent: s.parent, minTier: s.tier}
}

// checkHealed returns a step that runs instead of s: a recheck that verifies that the problem has healed. If the recheck
// finds the problem again, a gate opens, and s runs only after the gate. If the latest session belongs to s, the caller
// passes it as last. Otherwise last is nil.
func (s step) checkHealed(last *escalation.Session) step {
	return step{
		action: stepSession, tier: escalation.TierObserve, purpose: escalation.PurposeRecheck,
		parent: cmp.Or(last, s.parent), minTier: s.tier, healed: true,
	}
}

// lookAnew returns the first look once more, in a new session. The step s is the one that waits because that look failed.
// In the meantime a look of another chain had a result.
func (s step) lookAnew() step {
	anew := step{action: stepSession, tier: escalation.TierObserve, healed: true}
	if s.tier == anew.tier && s.purpose == anew.purpose {
		anew.parent = s.parent
	}
	return anew
}

// requested returns the step that follows a person's request. Normally this is s, at the requested tier if that is
// higher. If s continues an interrupted session, a higher tier escalates from that session.
func (s step) requested(request *EscalateSignal) step {
	if s.continues != nil && request.ToTier > s.tier { // a higher tier cannot continue that session
		return s.escalate(*s.continues, request.ToTier, request)
	}
	s.action, s.tier, s.request = stepSession, max(s.tier, request.ToTier), request
	return s
}

// forced reports whether a person allowed the step to skip the cooldowns.
func (s step) forced() bool { return s.request != nil && s.request.Force }

// waiting returns s as a step that waits. The decision gives the reason and the end of the wait.
func (s step) waiting(decision escalation.Decision) step {
	s.action, s.decision = stepWait, decision
	return s
}

// gated returns s as a step that opens a gate. The decision gives the reason.
func (s step) gated(decision escalation.Decision) step {
	s.action, s.decision = stepOpenGate, decision
	return s
}

// origin returns the session that s continues or, without one, its parent; nil if there is neither.
func (s step) origin() *escalation.Session { return cmp.Or(s.continues, s.parent) }

// goesOn reports whether the step goes on with work that something has cut off: the cooldowns have begun with its own repairs.
func (s step) goesOn() bool { return (s.continues != nil || s.cutOff != nil) && !s.chosen }

// hasRun reports whether this step has run. The argument last is the chain's latest session; nil if no session has
// run.
func (s step) hasRun(last *escalation.Session) bool { return !s.refused && last != nil }
