package chain

import (
	"cmp"
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows/parts"
)

// step is what a chain does next.
type step interface {
	// do does the step, and returns the one that follows; nil if the chain has ended.
	do(ctx workflow.Context, c *chainRun) (step, error)
}

// The kinds of steps.
type (
	// sessionStep runs a session.
	sessionStep struct{ work }
	// waitStep waits until a session that was refused may run. The decision gives the reason and the end of the wait.
	waitStep struct {
		work
		decision escalation.Decision
	}
	// gateOpening opens a gate. The decision gives the reason.
	gateOpening struct {
		pending
		decision escalation.Decision
	}
	// gateStep waits at the open gate.
	gateStep struct{ pending }
	// reviewStep has the change of the chain reviewed again.
	reviewStep struct{ pending }
)

// pending is the work about which a person decides.
type pending struct {
	work

	// Refused reports that the work has not run, either because its admission was refused or because its handoff is
	// unusable.
	Refused bool `json:"refused,omitempty"`
}

// work describes a session of a chain. A chain that continues as new passes it on; what the answer at the gate sets
// again is not passed on.
type work struct {
	Tier    escalation.Tier    `json:"tier"`
	Purpose escalation.Purpose `json:"purpose,omitempty"`
	// Parent is the session that provides the conversation or the handoff for the tier; nil if there is none. If its
	// conversation could not be used, Parent says so, and every step after this one knows it.
	Parent *escalation.Session `json:"parent,omitempty"`
	// CutOff is an earlier session of this work that had begun and cannot be resumed; nil if no session was cut off.
	CutOff *escalation.Session `json:"cut_off,omitempty"`
	// Left holds the tool calls that had no result when the session in CutOff or Continues ended.
	Left []activities.ToolCall `json:"left,omitempty"`
	// Handoff is the document that the previous tier has written for this work; nil if there is none.
	Handoff *escalation.Handoff `json:"handoff,omitempty"`
	// Asked reports whether the previous tier was asked for a handoff.
	Asked bool `json:"asked,omitempty"`
	// MinTier is the lowest tier to which this recheck may escalate, which is the tier of the work that waited for
	// the recheck. It is 0 if the work is no recheck.
	MinTier escalation.Tier `json:"min_tier,omitempty"`
	// Request is the person's request that led to this work; nil if there was none.
	Request *parts.EscalateSignal `json:"-"`
	// Continues is the session that this work continues; nil if there is none. Chosen reports that a person chose so at
	// a gate, because the session was interrupted. Otherwise an author continues its own session to correct its change,
	// or a tier its own that the limit of the account has cut off.
	Continues *escalation.Session `json:"-"`
	Chosen    bool                `json:"-"`
	// Healed reports that the work follows news from other chains: they have found the incidents healed. The work is a
	// recheck, which verifies that, or the first look once more (see lookAnew).
	Healed bool `json:"healed,omitempty"`
	// Passes lists the rules that a person at a gate has allowed the work to pass.
	Passes []escalation.Rule `json:"passes,omitempty"`
	// Corrects reports that the session corrects the change of the chain, after a review or a gate of it.
	Corrects bool `json:"corrects,omitempty"`
}

// firstWork returns the first work of the chain, as the chain's input defines it.
func (c *chainRun) firstWork(ctx workflow.Context) (work, error) {
	first := work{Tier: max(c.input.StartTier, escalation.TierObserve)}
	if c.input.Force {
		first.Request = &parts.EscalateSignal{ToTier: first.Tier, Force: true}
	}
	from := c.input.ResumeFrom
	if from == nil {
		return first, nil
	}
	known, err := c.Sessions.Find(ctx, from.SessionID)
	switch {
	case err != nil:
		return first, c.abortIfCancelled(ctx, err)
	case known.Found && known.Session.Status == escalation.SessionRunning:
		return first, c.Log.Refuse(ctx, fmt.Errorf("resume_from.session_id %s is still running in chain %s",
			from.SessionID, known.Session.ChainID))
	case known.Found && known.Session.Purpose == escalation.PurposeTalk:
		return first, c.Log.Refuse(ctx, fmt.Errorf("resume_from.session_id %s belongs to %s, "+
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

// checkStart returns the reason why the policy forbids the chain. If the chain may start, checkStart returns nil.
func checkStart(policy escalation.Policy, input Input) error {
	if err := parts.CheckActor(policy, input.Actor); err != nil {
		return err
	}
	if input.Force && policy.Gate.Restricts() {
		return errors.New("force is not possible: who may pass a cooldown answers at the gate " +
			"(CLAUDEOPS_GATE_APPROVERS, CLAUDEOPS_GATE_FOUR_EYES, CLAUDEOPS_GATE_REQUIRE_VERIFIED)")
	}
	if first := max(input.StartTier, escalation.TierObserve); first > policy.MaxTier &&
		input.Trigger != escalation.TriggerIssue {
		return fmt.Errorf("start_tier %d is higher than the highest tier allowed, %d", int(first), int(policy.MaxTier))
	}
	return nil
}

// escalate returns the work of a higher tier, which follows session.
func escalate(session escalation.Session, tier escalation.Tier, request *parts.EscalateSignal) work {
	return work{Tier: tier, Parent: &session, Request: request}
}

// handOff returns s with a handoff instead of a resumed conversation. The argument failed is the session that could not
// resume the conversation, or was refused in it. The argument left holds the tool calls of that session that have no
// result.
func (s work) handOff(failed escalation.Session, left []activities.ToolCall) work {
	s.Parent = s.Parent.Disown(failed)
	switch {
	// failed has lost its own conversation, not its parent's
	case failed.BeganWork() || failed.Ending == escalation.EndingRefused:
		s.CutOff, s.Left = &failed, left
	case s.Continues != nil && !s.Corrects: // the work of that session cannot be continued
		s.CutOff = s.Continues
	}
	s.Continues = nil
	return s
}

// lookAgain returns the work that follows a wait of s. Normally this is a recheck, which finds out at low cost
// whether s is still needed. In five cases lookAgain returns s itself: a person requested s, s follows no session,
// s corrects a change, s continues unfinished work, or s is a recheck.
func (s work) lookAgain() work {
	if s.Parent == nil || s.Request != nil || s.Corrects || s.Continues != nil ||
		s.Purpose == escalation.PurposeRecheck {
		return s
	}
	return work{Tier: escalation.TierObserve, Purpose: escalation.PurposeRecheck, Parent: s.Parent, MinTier: s.Tier}
}

// checkHealed returns the work that replaces s: a recheck that verifies that the problem has healed. If the recheck
// finds the problem again, a gate opens, and s runs only after the gate. If the latest session belongs to s, the caller
// passes it as last. Otherwise last is nil.
func (s work) checkHealed(last *escalation.Session) work {
	return work{
		Tier: escalation.TierObserve, Purpose: escalation.PurposeRecheck, Parent: cmp.Or(last, s.Parent),
		MinTier: s.Tier, Healed: true,
	}
}

// lookAnew returns the first look once more, in a new session. The work s is the one that waits because that look
// failed. In the meantime a look of another chain had a result.
func (s work) lookAnew() work {
	anew := work{Tier: escalation.TierObserve, Healed: true}
	if s.Tier == anew.Tier && s.Purpose == anew.Purpose {
		anew.Parent = s.Parent
	}
	return anew
}

// requested returns the work that follows a person's request. Normally this is s, at the requested tier if that is
// higher. If s continues an interrupted session, a higher tier escalates from that session.
func (s work) requested(request *parts.EscalateSignal) work {
	if s.Continues != nil && request.ToTier > s.Tier { // a higher tier cannot continue that session
		return escalate(*s.Continues, request.ToTier, request)
	}
	s.Tier, s.Request = max(s.Tier, request.ToTier), request
	return s
}

// forced reports whether a person allowed the work to skip the cooldowns.
func (s work) forced() bool { return s.Request != nil && s.Request.Force }

// origin returns the session that s continues or, without one, its parent; nil if there is neither.
func (s work) origin() *escalation.Session { return cmp.Or(s.Continues, s.Parent) }

// goesOn reports whether the session goes on with work that something has cut off: the cooldowns have begun with its
// own repairs.
func (s work) goesOn() bool { return (s.Continues != nil || s.CutOff != nil) && !s.Chosen }

// hasRun reports whether the work has run. The argument last is the chain's latest session; nil if no session has run.
func (s pending) hasRun(last *escalation.Session) bool { return !s.Refused && last != nil }
