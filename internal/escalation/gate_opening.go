package escalation

import (
	"fmt"
	"slices"
	"time"
)

// Gated returns decision or, if it would end the chain as needs_human or failed, one that opens a
// gate instead. A dry run has no gates: it looks and reports, and nobody has to decide anything.
func Gated(policy Policy, decision Decision) Decision {
	forPerson := decision.Outcome == OutcomeNeedsHuman || decision.Outcome == OutcomeFailed
	if decision.Action != DecisionComplete || !forPerson || policy.Gate.Timeout <= 0 || policy.DryRun {
		return decision
	}
	return Decision{Action: DecisionGate, Rule: decision.Rule, Reason: decision.Reason}
}

// GateOpening is all that a gate depends on when it opens.
type GateOpening struct {
	// Number counts the gates of the chain, this one included.
	Number int
	At     time.Time
	// Decision is what would have ended the chain.
	Decision Decision
	// Tier is that of the step that ran, or that was refused.
	Tier Tier
	// Refused says that the step was not admitted, so that its session did not run.
	Refused bool
	// Last is the session that ran last; nil if none did.
	Last *Session
	// Transcript is what is known of Last's transcript.
	Transcript TranscriptState
	// SpentUSD is what the chain has spent, and SpentAtMostUSD what counts for its budget, in US dollars.
	SpentUSD, SpentAtMostUSD float64
	// Tried is what the agents did, one sentence each.
	Tried []string
	// Before are the gates that were there before, in order; the latest two suffice.
	Before []Gate
}

// TranscriptState is what is known of a session's transcript.
type TranscriptState string

// The states.
const (
	TranscriptUnknown   TranscriptState = ""          // nobody could tell
	TranscriptReachable TranscriptState = "reachable" // an agent can go on with it
	TranscriptGone      TranscriptState = "gone"      // it is on no host that was asked, and in no archive
)

// maxAutomaticFixes is how often in a row a gate that nobody answers runs its tier again.
const maxAutomaticFixes = 2

// NewGate opens a gate under policy.
func NewGate(policy Policy, o GateOpening) Gate {
	gate := Gate{
		ID: fmt.Sprintf("gate-%d", o.Number), Source: o.source(), Tier: o.Tier,
		Rule: o.Decision.Rule, Reason: o.Decision.Reason, Tried: o.Tried, CostUSD: o.SpentUSD,
		OpenedAt: o.At, ExpiresAt: o.At.Add(policy.Gate.Timeout.Std()), OnTimeout: GateAbort,
	}
	if o.Last != nil {
		gate.SessionID, gate.Fresh = o.Last.SessionID, !o.Refused && o.Last.originGone()
	}
	gate.Continuation, gate.NoContinuation = ContinuationOf(policy, o)
	if gate.Continuation != nil {
		gate.Options = append(gate.Options, GateContinue)
	}
	if o.budgetLeft(policy) {
		gate.Options = append(gate.Options, GateFix)
		if policy.Gate.OnTimeout == GateFix && automaticFixes(o.Before) < maxAutomaticFixes {
			gate.OnTimeout = GateFix
		}
	}
	gate.Options = append(gate.Options, GateOverride, GateAbort)
	return gate
}

// source says what the gate is opened for.
func (o GateOpening) source() GateSource {
	switch {
	case o.Refused || o.Last == nil || o.Decision.Rule == RuleHandoffInvalid:
		return GateBlocked
	case o.Decision.Rule == RuleMaxTier && o.Tier == TierFullRepair:
		return GateUnresolved
	case o.Decision.Rule == RuleMaxTier:
		return GateBlocked
	case o.Last.Status == SessionTimedOut:
		return GateTimedOut
	case o.Last.Status == SessionBudgetExhausted:
		return GateBudget
	case o.Last.Verdict != nil && o.Last.Verdict.Status == VerdictNeedsHuman:
		return GateNeedsHuman
	default:
		return GateFailed
	}
}

// ContinuationOf returns the session that a gate offers to go on with, or in a sentence why it
// offers none. It is the last session, if that was interrupted in the role that comes next, and
// its conversation can be gone on with.
func ContinuationOf(policy Policy, o GateOpening) (*Continuation, string) {
	last := o.Last
	switch {
	case last == nil:
		return nil, "no session has run"
	case !o.budgetLeft(policy):
		return nil, "the chain's budget is spent or reserved"
	case last.Tier != o.Tier || last.Purpose == PurposeHandoff:
		return nil, fmt.Sprintf("the next step is the work of %s, and the last session was not", o.Tier)
	case !last.interrupted():
		return nil, fmt.Sprintf("%s has concluded: it asks for another tier", last.Tier)
	case last.Purpose == PurposeContinuation && !last.concludedForPerson():
		return nil, "going on with it was tried, and failed: only a new session may do better"
	case last.Status == SessionTimedOut && policy.Tiers[last.Tier-1].AbortOnTimeout:
		return nil, fmt.Sprintf("%s gives up its conversation when its time is up (CLAUDEOPS_TIER%d_ABORT_ON_TIMEOUT)",
			last.Tier, int(last.Tier))
	case last.Status == SessionStopped || last.Status == SessionRunning:
		return nil, fmt.Sprintf("%s was stopped", last.Tier)
	case last.Status == SessionTranscriptLost || last.Status == SessionResumeFailed:
		return nil, fmt.Sprintf("%s could not load its conversation (%s)", last.Tier, last.Status)
	case last.ReportedSessionID == "":
		return nil, fmt.Sprintf("%s did not come to have a conversation", last.Tier)
	case o.Transcript == TranscriptGone:
		return nil, "its transcript is gone: no agents' host that was asked has it, and no archive"
	case o.Transcript != TranscriptReachable:
		return nil, "nobody could tell whether its transcript is still there"
	}
	return &Continuation{SessionID: last.SessionID, Role: last.Tier, State: last.Status}, ""
}

// budgetLeft reports whether the chain has money for one more session.
func (o GateOpening) budgetLeft(policy Policy) bool {
	return policy.ChainBudgetUSD == 0 || policy.ChainBudgetUSD-o.SpentAtMostUSD >= leastBudgetUSD
}

// interrupted reports whether the session ended with work of its own tier left to do.
func (s *Session) interrupted() bool {
	return s.Verdict == nil || s.concludedForPerson() || s.Verdict.Status == VerdictFailed
}

// originGone reports whether the session could not load the conversation that it was to start from, and
// has nothing else to start from: that conversation has no record, and so no verdict.
func (s *Session) originGone() bool {
	lost := s.Status == SessionResumeFailed || s.Status == SessionTranscriptLost
	return lost && !s.BeganWork() && !s.Interrupted && s.Continuity == ContinuityResume && s.ParentID == 0
}

// concludedForPerson reports whether the session came to the conclusion that a person has to help.
// No tier is above the highest, so an escalation by it says the same.
func (s *Session) concludedForPerson() bool {
	if s.Status != SessionCompleted || s.Verdict == nil {
		return false
	}
	return s.Verdict.Status == VerdictNeedsHuman || s.Verdict.Status == VerdictEscalate && s.Tier == TierFullRepair
}

// automaticFixes counts the gates at the end of the list that nobody answered and that ran their
// tier again.
func automaticFixes(gates []Gate) int {
	count := 0
	for _, gate := range slices.Backward(gates) {
		answer := gate.Answer
		if answer == nil || answer.Actor != "" || answer.ToTier != 0 || answer.Action != GateFix {
			break
		}
		count++
	}
	return count
}

// Next says in a sentence what follows an answer that g takes.
func (g Gate) Next(closing GateClosing) string {
	told := ""
	if !blank(closing.Guidance) {
		told = ", with the guidance"
	}
	switch {
	case closing.ToTier != 0:
		return fmt.Sprintf("%s runs, once it is admitted%s", closing.ToTier, told)
	case closing.Action == GateContinue && g.Continuation != nil:
		return fmt.Sprintf("%s goes on with session %s, once it is admitted%s", g.Continuation.Role, g.Continuation.SessionID, told)
	case closing.Action == GateFix && g.Fresh:
		return fmt.Sprintf("%s runs again in a new session, without the conversation that could not be loaded, once it is admitted%s",
			g.Tier, told)
	case closing.Action == GateFix:
		return fmt.Sprintf("%s runs again in a new session, once it is admitted%s", g.Tier, told)
	case closing.Action == GateOverride:
		return "the state is accepted, and the chain ends as overridden"
	default:
		return "the chain ends as aborted"
	}
}

// Ends reports whether g is closed in a way that ends the chain.
func (g Gate) Ends() bool {
	if g.Answer == nil {
		return false
	}
	_, ends := g.Ending(*g.Answer)
	return ends
}

// Ending is how the chain ends by the closing of g; false if it goes on.
func (g Gate) Ending(closing GateClosing) (Decision, bool) {
	switch {
	case closing.Cancelled:
		return Cancelled(), true
	case closing.ToTier != 0 || closing.Action == GateContinue || closing.Action == GateFix:
		return Decision{}, false
	}
	reason := fmt.Sprintf("%s at %s (%s)", closing, g.ID, g.Reason)
	if closing.Action == GateOverride {
		return complete(OutcomeOverridden, RuleOperator, reason), true
	}
	if closing.Actor == "" {
		return complete(OutcomeAborted, RuleGateExpired, reason), true
	}
	return complete(OutcomeAborted, RuleOperator, reason), true
}
