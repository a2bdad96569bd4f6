package escalation

import (
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// Decision is the next step of a chain. It follows a session that has ended, or an admission that was refused.
type Decision struct {
	Action DecisionAction `json:"action"`
	// Tier is the tier to run next; 0 if no tier follows. If Action is DecisionGate, Tier is the tier that a person can
	// start at the gate; 0 means the tier that ran last.
	Tier Tier `json:"tier,omitempty"`
	// Outcome is the chain's outcome if Action is DecisionComplete. For other actions it is empty.
	Outcome Outcome `json:"outcome,omitempty"`
	// Until is the time of the next attempt if Action is DecisionWait. If a temporary limit asks for a person, it is
	// the time from which other chains may repair again; zero if that is not known. For other decisions it is zero.
	Until time.Time `json:"until,omitzero"`
	// LimitedModel names the models that the limit of the account concerns; empty for all models, and for other rules.
	LimitedModel string `json:"limited_model,omitempty"`
	// Rule names the rule that led to the decision.
	Rule Rule `json:"rule"`
	// Reason explains the decision in a sentence.
	Reason string `json:"reason"`
	// Refused is the rule that has refused the reviewer's session, or the temporary limit that has ended it; empty if
	// there was none, or Rule is not RuleReview.
	Refused Rule `json:"refused,omitempty"`
}

// DecisionAction classifies decisions by the step that follows.
type DecisionAction string

// The actions.
const (
	DecisionComplete DecisionAction = "complete" // end the chain
	DecisionEscalate DecisionAction = "escalate" // run a higher tier
	DecisionHandoff  DecisionAction = "handoff"  // run the same tier again from a handoff
	DecisionWait     DecisionAction = "wait"     // try again later
	DecisionSplit    DecisionAction = "split"    // start a chain for each issue
	DecisionGate     DecisionAction = "gate"     // wait at a gate for an operator
)

// Rule names the policy rule behind a decision.
type Rule string

// The rules.
const (
	RuleVerdict        Rule = "verdict"         // the tier's verdict decides, and no other rule applies
	RuleNoVerdict      Rule = "no_verdict"      // the session ended without a verdict
	RuleResumeFailed   Rule = "resume_failed"   // the conversation could not be loaded
	RuleTranscriptLost Rule = "transcript_lost" // the conversation is lost: its host is gone, and it was not archived
	RuleDryRun         Rule = "dry_run"         // a dry run never escalates
	RuleMaxTier        Rule = "max_tier"        // the next tier is higher than allowed
	RuleOperator       Rule = "operator"        // an operator requested this step
	RuleCancelled      Rule = "cancelled"       // an operator cancelled the chain
	RuleIssues         Rule = "issues"          // the chain ends with the worst outcome of its issues

	RuleAdmitted     Rule = "admitted"      // the session may start
	RuleChainBudget  Rule = "chain_budget"  // the chain's budget is used up
	RuleDayBudget    Rule = "day_budget"    // the budget of all chains for this day is used up
	RuleAccountLimit Rule = "account_limit" // the limit of the account at the model's provider is used up
	// RuleProviderAway: the model's provider does not answer, or accepts no key of the worker
	RuleProviderAway    Rule = "provider_away"
	RuleCooldown        Rule = "cooldown"         // the services were repaired too often recently
	RuleServiceBusy     Rule = "service_busy"     // another chain is repairing one of the services
	RuleEscalationLimit Rule = "escalation_limit" // too many chains have escalated recently
	RuleHandoffInvalid  Rule = "handoff_invalid"  // the handoff written by the previous tier cannot be used
	// RuleGateExpired: nobody answered at the gate, and no temporary limit had opened the gate
	RuleGateExpired   Rule = "gate_expired"
	RuleKnown         Rule = "known"           // other chains take care of everything that is wrong
	RuleReturned      Rule = "returned"        // the fault has come back too often after repairs
	RuleReview        Rule = "review"          // what a session has committed needs a person before it is pushed
	RuleTalksOfPerson Rule = "talks_of_person" // other conversations answer the same person
	RuleHealed        Rule = "healed"          // another chain or a person has reported the incidents as healed
)

// passes reports whether the rule is a temporary limit, such as a cooldown. Such a limit refuses a session only for
// some time.
func (r Rule) passes() bool {
	return r == RuleCooldown || r == RuleServiceBusy || r == RuleEscalationLimit || r == RuleDayBudget ||
		r == RuleAccountLimit ||
		r == RuleProviderAway
}

// Severity returns the severity of the event that records the decision.
func (d Decision) Severity() Severity {
	switch d.Outcome {
	case OutcomeFailed:
		return SeverityCritical
	case OutcomeNeedsHuman, OutcomeSuppressed:
		return SeverityWarning
	case OutcomeHealthy, OutcomeResolved, OutcomeApproved, OutcomeKnown, OutcomeOverridden, OutcomeAborted:
		return SeverityInfo
	}
	if d.Action == DecisionHandoff || d.Action == DecisionWait || d.Action == DecisionGate {
		return SeverityWarning
	}
	return SeverityInfo
}

// DecisionInput is the input of Decide, besides the policy and the session.
type DecisionInput struct {
	// MinTier is the tier that waits for the result of a recheck. If the recheck escalates, the next tier is at least
	// MinTier. MinTier is 0 if the session is no recheck.
	MinTier Tier
	// WaitingSince is the time at which the chain began to wait; zero if it has not waited.
	WaitingSince time.Time
	// NoSplit forbids splitting the chain by issue.
	NoSplit bool
	// Recognition compares the faults in the session's verdict with the incidents in the records; nil if the records
	// were not read.
	Recognition *Recognition
	// Healed reports that the session follows a report that the chain's incidents have healed, by another chain or a
	// person. The session is a recheck or, if the incidents were failed looks, the first look once more.
	Healed bool
}

// Decide returns the next step of the chain after session, under policy. Decide escalates only to a higher tier, never
// above policy.MaxTier, and never in a dry run.
func Decide(policy Policy, session Session, input DecisionInput) Decision {
	if session.LookFailed() && input.Recognition.AllKnown() {
		return complete(OutcomeKnown, RuleKnown, session.lookFault().Summary+"; "+input.Recognition.describe())
	}
	switch session.Treatment().Then {
	case SequelWait:
		return DecideLimited(policy, session, input.WaitingSince)
	case SequelAnew:
		if session.ParentID != 0 {
			return decideAnew(session)
		}
	case SequelStop:
	}
	switch session.Status {
	case SessionCompleted:
		if session.Verdict == nil {
			return complete(OutcomeFailed, RuleNoVerdict, fmt.Sprintf("%s ended without a verdict", session.Tier))
		}
		if input.Healed && session.Purpose == PurposeRecheck {
			return decideHealed(session.Tier, *session.Verdict, input.MinTier)
		}
		if input.Recognition.AllKnown() {
			return complete(OutcomeKnown, RuleKnown, input.Recognition.describe())
		}
		return decideVerdict(policy, session.Tier, *session.Verdict, input)
	case SessionResumeFailed, SessionTranscriptLost:
		return complete(OutcomeFailed, session.anewRule(), withoutVerdict(session))
	case SessionTimedOut, SessionBudgetExhausted:
		return session.failed(OutcomeNeedsHuman, RuleNoVerdict, withoutVerdict(session))
	case SessionStopped:
		return complete(OutcomeAborted, RuleNoVerdict, withoutVerdict(session))
	case SessionFailed, SessionRunning:
		return session.failed(OutcomeFailed, RuleNoVerdict, withoutVerdict(session))
	}
	return complete(OutcomeFailed, RuleNoVerdict, fmt.Sprintf("%s has the unknown status %q", session.Tier,
		session.Status))
}

// failed returns the decision on a session that has failed. Not the service, but the model's provider may have made it
// fail: then another chain may try again soon. Failed looks have their own incident.
func (s *Session) failed(outcome Outcome, rule Rule, reason string) Decision {
	decision := complete(outcome, rule, reason)
	if passing, until := s.PassingLimit(); passing != "" && !s.LookFailed() {
		decision.Rule, decision.Until = passing, until
	}
	return decision
}

// accountRetry is the time after which another chain tries again with an account that the provider has refused. Each
// attempt is paid with a look, and most likely a person must act first.
const accountRetry = 5 * time.Hour

// PassingLimit returns the rule of the temporary limit that has ended the session, and the time from which other chains
// may repair instead. The rule is empty if no such limit has.
func (s *Session) PassingLimit() (Rule, time.Time) {
	switch s.Ending { //nolint:exhaustive // the others do not pass
	case EndingProvider:
		return RuleProviderAway, s.EndedAt
	case EndingAccount:
		return RuleProviderAway, s.EndedAt.Add(accountRetry)
	case EndingLimited:
		return RuleAccountLimit, s.LimitedUntil
	}
	return "", time.Time{}
}

// HandoffInput is the input of DecideHandoff, besides the policy and the session.
type HandoffInput struct {
	// Next is the tier to which the handoff was to be written.
	Next Tier
	// WaitingSince is the time at which the chain began to wait; zero if it has not waited.
	WaitingSince time.Time
	// Problem says why the handoff cannot be used; empty if it can.
	Problem string
}

// DecideHandoff returns the step that follows a session whose task was to write the handoff to the next tier. A stopped
// session ends the chain. If there is no problem, the handoff can be used, and the next tier runs. If the session's
// conversation cannot be used, the next tier runs from the verdict. If the account's limit is used up, the chain waits.
// Any other problem ends the chain.
func DecideHandoff(policy Policy, session Session, input HandoffInput) Decision {
	next, problem := input.Next, input.Problem
	onward := Decision{Action: DecisionEscalate, Tier: next, Rule: RuleVerdict}
	switch {
	case session.Status == SessionStopped:
		return complete(OutcomeAborted, RuleCancelled, fmt.Sprintf("%s was to write its handoff: %s", session.Tier,
			session.Error))
	case problem == "":
		onward.Reason = fmt.Sprintf("%s has written the handoff to %s", session.Tier, next)
		return onward
	case session.Treatment().Then == SequelWait:
		return DecideLimited(policy, session, input.WaitingSince)
	case session.Treatment().Then == SequelAnew:
		onward.Rule = session.anewRule()
	default:
		return session.failed(OutcomeNeedsHuman, RuleHandoffInvalid, problem)
	}
	onward.Reason = fmt.Sprintf("%s starts from what the verdict says: %s", next, problem)
	return onward
}

// Requested returns the decision that a person's request for a tier makes of decision, the one on session without the
// request. Nothing overrides that the session was stopped.
func Requested(policy Policy, session Session, tier Tier, decision Decision) Decision {
	if session.Status == SessionStopped || CheckEscalationRequest(policy, session.Tier, tier) != nil {
		return decision
	}
	return Decision{
		Action: DecisionEscalate, Tier: tier, Rule: RuleOperator,
		Reason: fmt.Sprintf("a person asks for %s", tier),
	}
}

// CheckEscalationRequest returns nil if an operator can request the given tier. Otherwise the error gives the reason in
// a sentence. The tier must be higher than the tier of the latest session (last; 0 if no session has run). No request
// overrides a dry run or the highest permitted tier.
func CheckEscalationRequest(policy Policy, last, tier Tier) error {
	switch {
	case !tier.Valid():
		return fmt.Errorf("to_tier %d is not a tier: it must be 1, 2 or 3", int(tier))
	case policy.DryRun:
		return fmt.Errorf("%s is not possible: this is a dry run", tier)
	case tier > policy.MaxTier:
		return fmt.Errorf("%s is not possible: %s is the highest allowed", tier, policy.MaxTier)
	case tier <= last:
		return fmt.Errorf("%s is no escalation: %s runs or has run already", tier, last)
	default:
		return nil
	}
}

// DecideRefused returns the step that follows a refused admission.
func DecideRefused(refused Admission) Decision {
	decision := Decision{
		Action: DecisionWait, Until: refused.WaitUntil, Rule: refused.Rule, Reason: refused.Reason,
		LimitedModel: refused.LimitedModel,
	}
	if refused.WaitUntil.IsZero() {
		decision.Action, decision.Outcome, decision.Until = DecisionComplete, OutcomeNeedsHuman, refused.EndsAt
		if refused.Rule == RuleDayBudget {
			decision.Reason += "; a new day begins at 00:00 UTC"
		}
	}
	return decision
}

// DecideLimited returns the decision on a session that the limit of the account has ended: the chain waits for the end
// of the limit, unless that is later than a chain may wait. The chain has waited since waitingSince; zero if it has not
// waited.
func DecideLimited(policy Policy, session Session, waitingSince time.Time) Decision {
	request := AdmissionRequest{Tier: session.Tier, At: session.EndedAt, WaitingSince: waitingSince}
	facts := AdmissionFacts{LimitedUntil: session.LimitedUntil, LimitedModel: session.LimitedModel}
	if soon := session.EndedAt.Add(busyPoll); facts.LimitedUntil.Before(soon) { // another host's clock
		facts.LimitedUntil = soon
	}
	return DecideRefused(*admitAccount(policy, request, facts))
}

// QuietIfSpent changes the decision on a scheduled look that was refused, or that the limit of the account has ended.
// If the budget of the day or that limit is spent, the outcome becomes OutcomeSuppressed. No person is needed, because
// the schedule continues later.
func QuietIfSpent(decision Decision) Decision {
	if decision.Action == DecisionComplete && (decision.Rule == RuleDayBudget || decision.Rule == RuleAccountLimit) {
		decision.Outcome = OutcomeSuppressed
	}
	return decision
}

// DecideReview returns the decision on a session whose change was reviewed and not approved.
func DecideReview(reason string) Decision { return complete(OutcomeNeedsHuman, RuleReview, reason) }

// Approved returns the decision that ends the work on a plan when all of it is approved.
func Approved(reason string) Decision { return complete(OutcomeApproved, RuleReview, reason) }

// Overridden returns the decision that ends the work on a plan that a person has accepted as it is.
func Overridden(reason string) Decision { return complete(OutcomeOverridden, RuleOperator, reason) }

// ResolvedUnseen returns the decision on a refused recheck of incidents that were reported as healed. If the recheck
// can run later, ResolvedUnseen returns decision unchanged. If the recheck can never run, for example because the
// chain's budget is spent, the chain ends as resolved.
func ResolvedUnseen(decision Decision) Decision {
	if decision.Action != DecisionComplete {
		return decision
	}
	return complete(OutcomeResolved, RuleHealed,
		fmt.Sprintf("the problem was reported as healed, and %s cannot look once more: %s", TierObserve,
			decision.Reason))
}

// Cancelled returns the decision that ends a chain cancelled between two sessions.
func Cancelled() Decision {
	return complete(OutcomeAborted, RuleCancelled, "the chain was cancelled")
}

func decideVerdict(policy Policy, tier Tier, verdict Verdict, input DecisionInput) Decision {
	switch verdict.Status {
	case VerdictHealthy:
		// something was wrong before: a failed look, or the fault before the wait
		if input.Healed || input.MinTier != 0 {
			return complete(OutcomeResolved, RuleHealed, fmt.Sprintf("%s looked again and found everything healthy",
				tier))
		}
		return complete(OutcomeHealthy, RuleVerdict, fmt.Sprintf("%s found everything healthy", tier))
	case VerdictResolved:
		return complete(OutcomeResolved, RuleVerdict, fmt.Sprintf("%s resolved the problem", tier))
	case VerdictNeedsHuman:
		return complete(OutcomeNeedsHuman, RuleVerdict, fmt.Sprintf("%s asks for a person", tier))
	case VerdictFailed:
		return complete(OutcomeFailed, RuleVerdict, fmt.Sprintf("%s could not do its work", tier))
	case VerdictEscalate:
		return decideEscalation(policy, tier, verdict, input)
	}
	return complete(OutcomeFailed, RuleNoVerdict, fmt.Sprintf("%s gave the unknown verdict %q", tier, verdict.Status))
}

// decideEscalation applies the policy to an escalation that the verdict of a tier requests. A dry run always ends as
// suppressed, even if the requested tier is higher than permitted.
func decideEscalation(policy Policy, tier Tier, verdict Verdict, input DecisionInput) Decision {
	next := max(verdict.RecommendedTier, tier+1, input.MinTier)
	switch {
	case policy.DryRun:
		return complete(OutcomeSuppressed, RuleDryRun, fmt.Sprintf("%s asks for %s, and this is a dry run", tier, next))
	case len(verdict.Issues) > 1 && tier == TierObserve && tier < policy.MaxTier && !input.NoSplit:
		return Decision{
			Action: DecisionSplit, Rule: RuleVerdict,
			Reason: fmt.Sprintf("%s found %d independent issues", tier, len(verdict.Issues)),
		}
	case !next.Valid():
		return complete(OutcomeNeedsHuman, RuleMaxTier,
			fmt.Sprintf("%s could not resolve the problem, and no tier is higher", tier))
	case next > policy.MaxTier:
		decision := complete(OutcomeNeedsHuman, RuleMaxTier,
			fmt.Sprintf("%s asks for %s, and %s is the highest allowed", tier, next, policy.MaxTier))
		if decision.Tier = next; policy.MaxTier > tier { // it has not tried yet
			decision.Tier = policy.MaxTier
		}
		return decision
	}
	// Skip this after a recheck. The chain decided before the recheck how to begin with a fault that has come back.
	if returned := input.Recognition.Returned(policy.Returns, -1); returned != nil && input.MinTier == 0 {
		return DecideReturned(policy, *returned, next, input.Recognition.At)
	}
	return Decision{
		Action: DecisionEscalate, Tier: next, Rule: RuleVerdict,
		Reason: fmt.Sprintf("%s asks for %s", tier, next),
	}
}

// DecideNotRaised returns the decision on a tier that a person has allowed at a gate, and the workers do not.
func DecideNotRaised(policy Policy, tier Tier) Decision {
	return complete(OutcomeNeedsHuman, RuleMaxTier, fmt.Sprintf("%s did not start: the workers allow %s at most; set "+
		"CLAUDEOPS_MAX_TIER=%d in their claudeops.env, start them anew, and answer once more", tier, policy.MaxTier,
		int(tier)))
}

// DecideReturned returns the decision on a fault that has come back too often after repairs. If policy allows
// TierFullRepair, and no chain has tried that tier for this incident, the decision escalates to TierFullRepair at once.
// In all other cases the decision asks a person, who can then start the next tier.
func DecideReturned(policy Policy, incident Incident, next Tier, at time.Time) Decision {
	reason := fmt.Sprintf("%s has come back %d times within %s after repairs", incident.Describe(),
		incident.ReturnsWithin(policy.Returns, at), plaintext.Length(policy.Returns.Window.Std()))
	if policy.MaxTier >= TierFullRepair && incident.HighestTier() < TierFullRepair {
		return Decision{
			Action: DecisionEscalate, Tier: TierFullRepair, Rule: RuleReturned,
			Reason: fmt.Sprintf("%s: %s begins at once", reason, TierFullRepair),
		}
	}
	decision := complete(OutcomeNeedsHuman, RuleReturned, reason+": repairing it in the same way again does not help")
	decision.Tier = next
	return decision
}

// AskFirst returns the decision that asks a person before anything is repaired.
func AskFirst(reason string) Decision { return complete(OutcomeNeedsHuman, RuleReturned, reason) }

// decideHealed returns the decision on a recheck of incidents that were reported as healed. The recheck ran in the
// given tier. If it still finds the incidents, the decision asks a person again. That person can start the tier that
// waited for the recheck (next).
func decideHealed(tier Tier, verdict Verdict, next Tier) Decision {
	again := complete(OutcomeNeedsHuman, RuleHealed,
		fmt.Sprintf("the problem was reported as healed, and %s still finds it", tier))
	again.Tier = next
	switch verdict.Status {
	case VerdictHealthy, VerdictResolved:
		return complete(OutcomeResolved, RuleHealed, fmt.Sprintf("%s found that the problem has healed", tier))
	case VerdictEscalate, VerdictNeedsHuman, VerdictFailed:
		return again
	}
	return again
}

// decideAnew returns the decision that runs a tier once more from a handoff, because the conversation that the session
// has resumed cannot be used. The new session does not resume, so this happens at most once.
func decideAnew(session Session) Decision {
	what := "could not resume the conversation"
	switch {
	case session.Status == SessionTranscriptLost:
		what = "found the conversation lost"
	case session.Ending == EndingRefused:
		what = "was refused in the conversation (" + session.Error + ")"
	case session.Error != "":
		what += " (" + session.Error + ")"
	}
	return Decision{
		Action: DecisionHandoff, Tier: session.Tier, Rule: session.anewRule(),
		Reason: fmt.Sprintf("%s %s and starts again from a handoff", session.Tier, what),
	}
}

// anewRule returns the rule of a decision on a session whose conversation cannot be used.
func (s *Session) anewRule() Rule {
	if s.Status == SessionTranscriptLost {
		return RuleTranscriptLost
	}
	return RuleResumeFailed
}

func complete(outcome Outcome, rule Rule, reason string) Decision {
	return Decision{Action: DecisionComplete, Outcome: outcome, Rule: rule, Reason: reason}
}

func withoutVerdict(session Session) string {
	if session.Error == "" {
		return fmt.Sprintf("%s ended without a verdict (%s)", session.Tier, InWords(session.Status))
	}
	said := fmt.Sprintf("%s ended without a verdict (%s): %s", session.Tier, InWords(session.Status), session.Error)
	if session.Ending != EndingNone && session.Ending != EndingOurLimit {
		said = fmt.Sprintf("%s; %s (docs/refusals.md)", strings.TrimRight(said, "."), session.Treatment().Do)
	}
	return said
}
