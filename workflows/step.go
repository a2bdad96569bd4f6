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
// that can follow it. A chain that continues as new passes its step on; what the answer at the gate sets again is not passed on.
type step struct {
	Action stepAction `json:"-"`
	// Decision is the decision that makes the chain wait or open a gate.
	Decision escalation.Decision `json:"-"`

	Tier    escalation.Tier    `json:"tier"`
	Purpose escalation.Purpose `json:"purpose,omitempty"`
	// Parent is the session that provides the conversation or the handoff for the tier; nil if there is none. If its conversation
	// could not be used, Parent says so, and every step after this one knows it.
	Parent *escalation.Session `json:"parent,omitempty"`
	// CutOff is an earlier session of this step that had begun its work and cannot be resumed; nil if no session was
	// cut off.
	CutOff *escalation.Session `json:"cut_off,omitempty"`
	// Left holds the tool calls that had no result when the session in CutOff or Continues ended.
	Left []activities.ToolCall `json:"left,omitempty"`
	// Handoff is the document that the previous tier has written for this step; nil if there is none.
	Handoff *escalation.Handoff `json:"handoff,omitempty"`
	// Asked reports whether the previous tier was asked for a handoff.
	Asked bool `json:"asked,omitempty"`
	// MinTier is the lowest tier to which this recheck may escalate, which is the tier of the step that waited for
	// the recheck. It is 0 if the step is no recheck.
	MinTier escalation.Tier `json:"min_tier,omitempty"`
	// Request is the person's request that led to this step; nil if there was none.
	Request *EscalateSignal `json:"-"`
	// Continues is the session that this step continues; nil if there is none. Chosen reports that a person chose so at a
	// gate, because the session was interrupted. Otherwise an author continues its own session to correct its change, or a
	// tier its own that the limit of the account has cut off.
	Continues *escalation.Session `json:"-"`
	Chosen    bool                `json:"-"`
	// Healed reports that this step follows news from other chains: they have found the incidents healed. The step is a
	// recheck, which verifies that, or the first look once more (see lookAnew).
	Healed bool `json:"healed,omitempty"`
	// Refused reports that the step has not run, either because its admission was refused or because its handoff is
	// unusable.
	Refused bool `json:"refused,omitempty"`
	// Passes lists the rules that a person at a gate has allowed the step to pass.
	Passes []escalation.Rule `json:"passes,omitempty"`
	// Corrects reports that the session of this step corrects the change of the chain, after a review or a gate of it.
	Corrects bool `json:"corrects,omitempty"`
}

// firstStep returns the first step of the chain, as the chain's input defines it.
func (c *chainRun) firstStep(ctx workflow.Context) (step, error) {
	first := step{Action: stepSession, Tier: max(c.input.StartTier, escalation.TierObserve)}
	if c.input.Force {
		first.Request = &EscalateSignal{ToTier: first.Tier, Force: true}
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
		first.Parent = &known.Session
	default:
		// The conversation has no record, so only its ID is known.
		first.Parent = &escalation.Session{
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
	return step{Action: stepSession, Tier: tier, Parent: &session, Request: request}
}

// handOff returns s with a handoff instead of a resumed conversation. The argument failed is the session that could
// not resume the conversation, or was refused in it. The argument left holds the tool calls of that session that have no result.
func (s step) handOff(failed escalation.Session, left []activities.ToolCall) step {
	s.Parent = s.Parent.Disown(failed)
	switch {
	case failed.BeganWork() || failed.Ending == escalation.EndingRefused: // failed has lost its own conversation, not its parent's
		s.CutOff, s.Left = &failed, left
	case s.Continues != nil && !s.Corrects: // the work of that session cannot be continued
		s.CutOff = s.Continues
	}
	s.Continues = nil
	return s
}

// lookAgain returns the step that follows a wait of s. Normally this is a recheck, which finds out at low cost
// whether s is still needed. In five cases lookAgain returns s itself: a person requested s, s follows no session,
// s corrects a change, s continues unfinished work, or s is a recheck.
func (s step) lookAgain() step {
	if s.Parent == nil || s.Request != nil || s.Corrects || s.Continues != nil || s.Purpose == escalation.PurposeRecheck {
		s.Action = stepSession
		return s
	}
	return step{Action: stepSession, Tier: escalation.TierObserve, Purpose: escalation.PurposeRecheck, Parent: s.Parent, MinTier: s.Tier}
}

// checkHealed returns a step that runs instead of s: a recheck that verifies that the problem has healed. If the recheck
// finds the problem again, a gate opens, and s runs only after the gate. If the latest session belongs to s, the caller
// passes it as last. Otherwise last is nil.
func (s step) checkHealed(last *escalation.Session) step {
	return step{
		Action: stepSession, Tier: escalation.TierObserve, Purpose: escalation.PurposeRecheck,
		Parent: cmp.Or(last, s.Parent), MinTier: s.Tier, Healed: true,
	}
}

// lookAnew returns the first look once more, in a new session. The step s is the one that waits because that look failed.
// In the meantime a look of another chain had a result.
func (s step) lookAnew() step {
	anew := step{Action: stepSession, Tier: escalation.TierObserve, Healed: true}
	if s.Tier == anew.Tier && s.Purpose == anew.Purpose {
		anew.Parent = s.Parent
	}
	return anew
}

// requested returns the step that follows a person's request. Normally this is s, at the requested tier if that is
// higher. If s continues an interrupted session, a higher tier escalates from that session.
func (s step) requested(request *EscalateSignal) step {
	if s.Continues != nil && request.ToTier > s.Tier { // a higher tier cannot continue that session
		return s.escalate(*s.Continues, request.ToTier, request)
	}
	s.Action, s.Tier, s.Request = stepSession, max(s.Tier, request.ToTier), request
	return s
}

// forced reports whether a person allowed the step to skip the cooldowns.
func (s step) forced() bool { return s.Request != nil && s.Request.Force }

// waiting returns s as a step that waits. The decision gives the reason and the end of the wait.
func (s step) waiting(decision escalation.Decision) step {
	s.Action, s.Decision = stepWait, decision
	return s
}

// gated returns s as a step that opens a gate. The decision gives the reason.
func (s step) gated(decision escalation.Decision) step {
	s.Action, s.Decision = stepOpenGate, decision
	return s
}

// origin returns the session that s continues or, without one, its parent; nil if there is neither.
func (s step) origin() *escalation.Session { return cmp.Or(s.Continues, s.Parent) }

// goesOn reports whether the step goes on with work that something has cut off: the cooldowns have begun with its own repairs.
func (s step) goesOn() bool { return (s.Continues != nil || s.CutOff != nil) && !s.Chosen }

// hasRun reports whether this step has run. The argument last is the chain's latest session; nil if no session has
// run.
func (s step) hasRun(last *escalation.Session) bool { return !s.Refused && last != nil }
