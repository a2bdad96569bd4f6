package escalation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// Gated replaces a decision that would end the chain as needs_human or failed. The new decision opens a gate. Gated
// returns all other decisions unchanged. In a dry run no gate opens, because there are no changes for an operator to
// approve.
func Gated(policy Policy, decision Decision) Decision {
	forPerson := decision.Outcome == OutcomeNeedsHuman || decision.Outcome == OutcomeFailed
	if decision.Action != DecisionComplete || !forPerson || policy.Gate.Timeout <= 0 || policy.DryRun {
		return decision
	}
	decision.Action, decision.Outcome = DecisionGate, ""
	return decision
}

// GateInput is the input of NewGate.
type GateInput struct {
	// Number is the number of this gate in its chain, from 1.
	Number int
	At     time.Time
	// Decision is the decision that would have ended the chain.
	Decision Decision
	// Tier is the tier of the step before the gate, which has run or was refused.
	Tier Tier
	// Refused reports that the step before the gate was refused, so its session did not run.
	Refused bool
	// Last is the latest session; nil if none has run.
	Last *Session
	// Transcript is the known state of Last's transcript.
	Transcript TranscriptState
	// Loop describes the gate of a loop of author and reviewer; nil for other gates.
	Loop *LoopGate
	// SpentUSD is the chain's spending. SpentAtMostUSD is the amount that counts against the chain's budget. Both are
	// in US dollars.
	SpentUSD, SpentAtMostUSD float64
	// SpentEstimated reports whether a part of SpentUSD is an estimate.
	SpentEstimated bool
	// Tried lists what the agents did, one sentence for each session.
	Tried []string
	// Incidents are those that the chain has met, and Sessions its sessions. Notes comes from the records.
	Incidents []ChainIncident
	Sessions  []Session
	Notes     GateNotes
	// History describes the earlier repairs of a fault that has come back, one line for each.
	History []string
	// Commit is the commit that the answer override accepts; empty if there is none. Open describes its open findings,
	// which the answer accepts, too.
	Commit, Open string
	// Phase is the phase of a plan at which the gate is, and Plan the path of the plan; both are empty if it belongs to
	// no plan. Approved is the commit of what was approved of the plan before; empty if there is none.
	Phase, Plan, Approved string
	// NoRemote reports that the repository has no remote origin, so nothing is pushed.
	NoRemote bool
	// Before lists the chain's earlier gates in order. A caller can omit all except the latest maxAutomaticFixes gates,
	// because NewGate counts only these.
	Before []Gate
}

// LoopGate describes the gate of a loop of author and reviewer. Package review decides on the continuation.
type LoopGate struct {
	// Role and Resume are those of Gate.
	Role, Resume string
	// Continuation is the session that can be continued. It is nil if there is none; NoContinuation then gives the
	// reason.
	Continuation   *Continuation
	NoContinuation string
}

// TranscriptState says whether an agent can load a session's transcript.
type TranscriptState string

// The states.
const (
	TranscriptUnknown   TranscriptState = ""          // could not be determined
	TranscriptReachable TranscriptState = "reachable" // an agent can resume it
	TranscriptGone      TranscriptState = "gone"      // found neither on a host that was asked nor in the archive
)

// maxAutomaticFixes limits how many consecutive gates of a chain start their tier again when they expire.
const maxAutomaticFixes = 2

// NewGate returns the gate to open under policy, without opening it.
func NewGate(policy Policy, o GateInput) Gate {
	gate := Gate{
		ID: fmt.Sprintf("gate-%d", o.Number), Source: o.source(), Tier: o.Tier, Phase: o.Phase, Plan: o.Plan,
		Commit: o.Commit, Open: o.Open, Approved: o.Approved, NoRemote: o.NoRemote,
		Rule: o.Decision.Rule, Reason: o.Decision.Reason, Refused: o.Decision.Refused,
		Faults: faultsOf(o.Incidents), Found: foundBy(o.Sessions), GateNotes: o.Notes,
		Tried: o.Tried, History: o.History, Cost: Cost{CostUSD: o.SpentUSD, CostEstimated: o.SpentEstimated},
		OpenedAt: o.At, ExpiresAt: o.At.Add(policy.Gate.Timeout.Std()), OnTimeout: GateAbort,
	}
	if o.Last != nil {
		gate.SessionID, gate.Fresh = o.Last.SessionID, !o.Refused && o.Last.originGone()
	}
	if o.Loop != nil {
		gate.Role, gate.Resume = o.Loop.Role, o.Loop.Resume
	}
	switch {
	case o.Phase != "":
	case o.Tier > policy.MaxTier:
		gate.MaxTier = policy.MaxTier
	case o.Tier < policy.MaxTier && !policy.Gate.Restricts():
		gate.Higher = policy.MaxTier
	}
	gate.Continuation, gate.NoContinuation = ContinuationOf(o)
	if gate.Continuation != nil {
		gate.Options = append(gate.Options, GateContinue)
	}
	free := gate.Repeats() != ""                                           // it starts no session
	wrong := o.Last != nil && !o.Refused && o.Last.Ending == EndingRequest // it would be refused again
	if policy.Gate.OnTimeout == GateFix && !wrong && gate.MaxTier == 0 && (free || o.budgetLeft(policy)) &&
		automatic(o.Before, GateFix) < maxAutomaticFixes {
		gate.OnTimeout = GateFix
	}
	gate.Options = append(gate.Options, GateFix)
	if o.Phase == "" && (o.Last != nil || o.Tier > TierObserve) { // there is something to look at again
		gate.Options = append(gate.Options, GateRecheck)
	}
	gate.Options = append(gate.Options, GateOverride, GateAbort)
	gate.Budget = o.budget(policy)
	return gate
}

// faultsOf returns the open incidents of which the chain itself takes care, the most severe first.
func faultsOf(incidents []ChainIncident) []ChainIncident {
	own := slices.DeleteFunc(slices.Clone(incidents), func(incident ChainIncident) bool {
		return incident.Handler != "" || incident.Resolved || incident.Summary == ""
	})
	slices.SortStableFunc(own, func(a, b ChainIncident) int { return CompareSeverity(a.Severity, b.Severity) })
	return own[:min(len(own), MaxGateFaults)]
}

// foundBy returns what the latest session with a verdict has found, and its tier if a later session has no verdict.
func foundBy(sessions []Session) string {
	for i, session := range slices.Backward(sessions) {
		if session.Verdict == nil || session.Purpose == PurposeReview {
			continue
		}
		found := cut(plaintext.Compact(cmp.Or(session.Verdict.Summary, session.Verdict.Findings)), maxIncidentText)
		if found != "" && i < len(sessions)-1 {
			found += " (" + session.Tier.String() + ")"
		}
		return found
	}
	return ""
}

// budget says under which budget a session starts after the gate, if a budget has opened it or is spent; empty if none
// is.
func (o GateInput) budget(policy Policy) string {
	var setting string
	last := o.Last
	switch {
	case !o.budgetLeft(policy) && policy.OwnBudgetUSD > 0:
		return fmt.Sprintf("with another %s, as far as the CLAUDEOPS_CHAIN_BUDGET_USD permits that is set then",
			plaintext.Dollars(policy.OwnBudgetUSD))
	case !o.budgetLeft(policy) || o.Decision.Rule == RuleChainBudget:
		setting = "CLAUDEOPS_CHAIN_BUDGET_USD"
	case o.Decision.Rule == RuleDayBudget || o.Decision.Refused == RuleDayBudget:
		setting = "CLAUDEOPS_DAY_BUDGET_USD"
	case last != nil && !o.Refused && last.Ending == EndingRequest:
		setting = modelSetting(*last)
	case last == nil || o.Refused || last.Status != SessionBudgetExhausted || last.BudgetUSD == 0 ||
		last.CostUSD < last.BudgetUSD:
		return ""
	case last.Purpose == PurposeReview:
		setting = "CLAUDEOPS_REVIEWER_BUDGET_USD"
	case last.Purpose == PurposeAuthor:
		setting = "CLAUDEOPS_AUTHOR_BUDGET_USD"
	default:
		setting = fmt.Sprintf("CLAUDEOPS_TIER%d_BUDGET_USD", last.Tier)
	}
	return "under the " + setting + " that is set then"
}

// modelSetting names the setting of a session's model.
func modelSetting(session Session) string {
	switch session.Purpose { //nolint:exhaustive // the others have the model of their tier
	case PurposeReview:
		return "CLAUDEOPS_REVIEWER_MODEL"
	case PurposeAuthor:
		return "CLAUDEOPS_AUTHOR_MODEL"
	}
	return fmt.Sprintf("CLAUDEOPS_TIER%d_MODEL", session.Tier)
}

// source says why the gate is opened.
func (o GateInput) source() GateSource {
	switch {
	case o.Decision.Rule == RuleReturned:
		return GateBlocked
	case o.Decision.Rule == RuleReview:
		return GateNeedsHuman
	case o.Refused && o.Decision.Rule != RuleHealed || o.Last == nil || o.Decision.Rule == RuleHandoffInvalid:
		return GateBlocked
	case o.Decision.Rule == RuleHealed:
		return GateNeedsHuman
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

// ContinuationOf returns the session that the gate offers to continue. If the gate offers none, ContinuationOf returns
// nil and the reason in a sentence. The chain's last session qualifies if it was interrupted, has the tier of the next
// step, and can be resumed. At the gate of a loop, o.Loop says which session qualifies.
func ContinuationOf(o GateInput) (*Continuation, string) {
	last := o.Last
	switch {
	case last == nil:
		return nil, "no session has run"
	case o.Loop != nil:
		return o.Loop.Continuation, o.Loop.NoContinuation
	case last.Tier != o.Tier || last.Purpose == PurposeHandoff:
		return nil, fmt.Sprintf("the next step is for %s, and the last session had other work", o.Tier)
	case !last.interrupted():
		return nil, fmt.Sprintf("%s has concluded: it asks for another tier", last.Tier)
	case last.Continued() && !last.AsksPerson():
		return nil, "going on with it was tried, and failed: only a new session may do better"
	case last.Status == SessionStopped || last.Status == SessionRunning:
		return nil, fmt.Sprintf("%s was stopped", last.Tier)
	case last.Status == SessionTranscriptLost || last.Status == SessionResumeFailed:
		return nil, fmt.Sprintf("%s could not load its conversation (%s)", last.Tier, InWords(last.Status))
	case !last.Treatment().Continues:
		return nil, fmt.Sprintf("%s would end in the same way in its conversation (%s)", last.Tier,
			InWords(last.Ending))
	case last.ReportedSessionID == "":
		return nil, fmt.Sprintf("%s did not come to have a conversation", last.Tier)
	case o.Transcript == TranscriptGone:
		return nil, "its transcript is gone: no agents' host that was asked has it, and no archive"
	case o.Transcript != TranscriptReachable:
		return nil, "nobody could tell whether its transcript is still there"
	}
	return &Continuation{SessionID: last.SessionID, Tier: last.Tier, Status: last.Status}, ""
}

// budgetLeft reports whether the chain's budget suffices for another session.
func (o GateInput) budgetLeft(policy Policy) bool {
	limit, budget := policy.ChainBudgetUSD, 0.0
	switch {
	case limit == 0:
		return true
	case o.Loop == nil:
		budget = policy.For(o.Tier).BudgetUSD
	case o.Loop.Role == "reviewer":
		budget = policy.Review.Reviewer.BudgetUSD
	case o.Loop.Role == "author":
		budget = policy.Author.Role.BudgetUSD
	}
	return limit-o.SpentAtMostUSD >= leastUSD(limit, budget)
}

// interrupted reports whether the session ended before the work of its tier was done.
func (s *Session) interrupted() bool {
	return s.Verdict == nil || s.AsksPerson() || s.Verdict.Status == VerdictFailed
}

// originGone reports whether the session could not use the conversation that the chain's input names, and this
// conversation has no record. Without a record there is no verdict from which a handoff could be built. A session that
// has lost its own conversation, after its model has answered or after an interruption, says nothing about the one
// before.
func (s *Session) originGone() bool {
	ownLost := s.Ending != EndingRefused && (s.ContextTokens > 0 || s.Interrupted && s.Status == SessionTranscriptLost)
	return s.ParentID == 0 && s.Treatment().Then == SequelAnew && !ownLost
}

// AsksPerson reports whether the session's verdict asks for a person. At the highest tier, a verdict that asks for
// escalation also asks for a person.
func (s *Session) AsksPerson() bool {
	if s.Status != SessionCompleted || s.Verdict == nil {
		return false
	}
	return s.Verdict.Status == VerdictNeedsHuman || s.Verdict.Status == VerdictEscalate && s.Tier == TierFullRepair
}

// maxRechecks limits how many consecutive gates of a chain are closed because other looks found its incidents healed,
// or had a result.
const maxRechecks = 2

// MayRecheck reports whether a chain at a gate may look once more because of another look. The argument before holds
// the gates before this one. If the chain has found its fault again each time, only a person can help: the two looks
// differ, for example in their model or their limits.
func MayRecheck(before []Gate) bool { return automatic(before, GateRecheck) < maxRechecks }

// automatic counts the gates at the end of the list that were closed by this action without a person.
func automatic(gates []Gate, action GateAction) int {
	count := 0
	for _, gate := range slices.Backward(gates) {
		answer := gate.Answer
		if answer == nil || answer.Actor != "" || answer.ToTier != 0 || answer.Action != action {
			break
		}
		count++
	}
	return count
}

// Ends reports whether the chain ends because of how g was closed. For an open gate it returns false.
func (g *Gate) Ends() bool {
	if g.Answer == nil {
		return false
	}
	_, ends := g.Ending(*g.Answer)
	return ends
}

// Ending returns the decision that ends the chain after the gate was closed in the given way. If the chain continues
// instead, Ending returns false.
func (g *Gate) Ending(closing GateClosing) (Decision, bool) {
	switch {
	case closing.Cancelled:
		return Cancelled(), true
	case closing.ToTier != 0 || closing.Action == GateContinue || closing.Action == GateFix ||
		closing.Action == GateRecheck:
		return Decision{}, false
	case closing.Action == GateOverride && g.Phase != "" && !g.pushes():
		return Decision{}, false
	}
	reason := fmt.Sprintf("%s at %s (%s)", closing, g.ID, g.Reason)
	if closing.Action == GateOverride {
		return complete(OutcomeOverridden, RuleOperator, reason), true
	}
	if closing.Actor == "" {
		return complete(OutcomeAborted, g.expiredRule(), reason), true
	}
	return complete(OutcomeAborted, RuleOperator, reason), true
}

// Allows returns the rules that the session after a person's answer may pass: the one that opened the gate, which the
// person has read, and the limit of the account, because the worker may have another key since. An expired gate allows
// nothing.
func (g *Gate) Allows() []Rule {
	if g.Answer == nil || g.Answer.Actor == "" {
		return nil
	}
	allowed := []Rule{cmp.Or(g.Refused, g.Rule), RuleAccountLimit}
	if g.Answer.Force {
		allowed = append(allowed, RuleCooldown)
	}
	return allowed
}

// expiredRule returns the rule of the decision that ends the chain when nobody has answered at the gate. If a temporary
// limit opened the gate, this is the rule of that limit. The next chain can then repair, because no person has to act.
func (g *Gate) expiredRule() Rule {
	for _, rule := range []Rule{g.Rule, g.Refused} {
		if rule.passes() {
			return rule
		}
	}
	return RuleGateExpired
}
