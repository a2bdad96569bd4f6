package escalation

import (
	"fmt"
	"time"
)

// Decision is what the supervisor does after a session has ended, or was refused.
type Decision struct {
	Action DecisionAction `json:"action"`
	// Tier is the tier to run next; 0 if none follows at once.
	Tier Tier `json:"tier,omitempty"`
	// Outcome is how the chain ends; empty unless Action is DecisionComplete.
	Outcome Outcome `json:"outcome,omitempty"`
	// Until is when to look again, with DecisionWait.
	Until time.Time `json:"until,omitzero"`
	// Rule is the rule that decided.
	Rule Rule `json:"rule"`
	// Reason explains the decision in a sentence.
	Reason string `json:"reason"`
}

// DecisionAction is the kind of step that follows.
type DecisionAction string

// The actions.
const (
	DecisionComplete DecisionAction = "complete" // end the chain
	DecisionEscalate DecisionAction = "escalate" // run a higher tier
	DecisionHandoff  DecisionAction = "handoff"  // run the same tier again, from a handoff
	DecisionWait     DecisionAction = "wait"     // look again later
	DecisionSplit    DecisionAction = "split"    // give each issue a chain of its own
	DecisionGate     DecisionAction = "gate"     // wait for a person
)

// Rule names the rule of the policy that a decision rests on.
type Rule string

// The rules.
const (
	RuleVerdict        Rule = "verdict"         // the tier concluded, and nothing objects
	RuleNoVerdict      Rule = "no_verdict"      // the session ended without a conclusion
	RuleResumeFailed   Rule = "resume_failed"   // the conversation could not be loaded
	RuleTranscriptLost Rule = "transcript_lost" // the conversation is gone: its host is lost, and it was not archived
	RuleDryRun         Rule = "dry_run"         // a dry run escalates nothing
	RuleMaxTier        Rule = "max_tier"        // the next tier is higher than allowed
	RuleOperator       Rule = "operator"        // a person asked for it
	RuleCancelled      Rule = "cancelled"       // a person cancelled the chain
	RuleIssues         Rule = "issues"          // the chain ends as its issues did

	RuleAdmitted        Rule = "admitted"         // nothing objects to the start of a session
	RuleChainBudget     Rule = "chain_budget"     // the chain has spent what it may
	RuleDayBudget       Rule = "day_budget"       // all chains together have spent what they may on this day
	RuleCooldown        Rule = "cooldown"         // the services were repaired too often lately
	RuleServiceBusy     Rule = "service_busy"     // another chain repairs one of the services
	RuleEscalationLimit Rule = "escalation_limit" // too many chains have escalated lately
	RuleHandoffInvalid  Rule = "handoff_invalid"  // the tier before wrote a handoff that cannot be used
	RuleGateExpired     Rule = "gate_expired"     // nobody answered at the gate
)

// Severity ranks the event that a decision leaves behind.
func (d Decision) Severity() Severity {
	switch d.Outcome {
	case OutcomeFailed:
		return SeverityCritical
	case OutcomeNeedsHuman, OutcomeSuppressed:
		return SeverityWarning
	case OutcomeHealthy, OutcomeResolved, OutcomeOverridden, OutcomeAborted:
		return SeverityInfo
	}
	if d.Action == DecisionHandoff || d.Action == DecisionWait || d.Action == DecisionGate {
		return SeverityWarning
	}
	return SeverityInfo
}

// Standing is what a decision rests on beside the session that has ended.
type Standing struct {
	// Floor is the tier that was asked for before the session looked again; 0 if none was.
	Floor Tier
	// Order is the tier that a person asks for; 0 if nobody does.
	Order Tier
	// Whole says that the chain must not split into its issues.
	Whole bool
}

// Decide says what follows session, the one that ended last, under policy. It never
// escalates past policy.MaxTier, never in a dry run, and never sideways or down.
func Decide(policy Policy, session Session, standing Standing) Decision {
	if standing.Order != 0 && session.Status != SessionStopped && CheckOrder(policy, session.Tier, standing.Order) == nil {
		return Decision{
			Action: DecisionEscalate, Tier: standing.Order, Rule: RuleOperator,
			Reason: fmt.Sprintf("a person asks for %s", standing.Order),
		}
	}
	switch session.Status {
	case SessionCompleted:
		if session.Verdict == nil {
			return complete(OutcomeFailed, RuleNoVerdict, fmt.Sprintf("%s ended without a verdict", session.Tier))
		}
		return decideVerdict(policy, session.Tier, *session.Verdict, standing)
	case SessionResumeFailed:
		return decideNoConversation(session, RuleResumeFailed, "could not resume the conversation")
	case SessionTranscriptLost:
		return decideNoConversation(session, RuleTranscriptLost, "found the conversation lost")
	case SessionTimedOut, SessionBudgetExhausted:
		return complete(OutcomeNeedsHuman, RuleNoVerdict, withoutVerdict(session))
	case SessionStopped:
		return complete(OutcomeAborted, RuleNoVerdict, withoutVerdict(session))
	case SessionFailed, SessionRunning:
		return complete(OutcomeFailed, RuleNoVerdict, withoutVerdict(session))
	}
	return complete(OutcomeFailed, RuleNoVerdict, fmt.Sprintf("%s has the unknown status %q", session.Tier, session.Status))
}

// DecideHandoff says what follows session, which was to write the handoff to next. problem says
// what is wrong with what it left; "" if nothing is. A conversation that is gone leaves the handoff to
// what the verdict says; what was left and cannot be used ends the chain, unless order, the tier that
// a person asks for, is not 0.
func DecideHandoff(session Session, problem string, next, order Tier) Decision {
	onward := Decision{Action: DecisionEscalate, Tier: max(next, order), Rule: RuleVerdict}
	switch {
	case session.Status == SessionStopped:
		return complete(OutcomeAborted, RuleCancelled, fmt.Sprintf("%s was to write its handoff: %s", session.Tier, session.Error))
	case order != 0:
		onward.Rule, onward.Reason = RuleOperator, fmt.Sprintf("a person asks for %s", order)
		return onward
	case problem == "":
		onward.Reason = fmt.Sprintf("%s has written the handoff to %s", session.Tier, next)
		return onward
	case session.Status == SessionResumeFailed:
		onward.Rule = RuleResumeFailed
	case session.Status == SessionTranscriptLost:
		onward.Rule = RuleTranscriptLost
	default:
		return complete(OutcomeNeedsHuman, RuleHandoffInvalid, problem)
	}
	onward.Reason = fmt.Sprintf("%s starts from what the verdict says: %s", next, problem)
	return onward
}

// CheckOrder says in a sentence why a person cannot have tier after the tier that ran last, 0 if
// none did; nil if it is possible. A person cannot pass the dry run or the highest tier.
func CheckOrder(policy Policy, last, tier Tier) error {
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

// DecideRefused says what follows when a session is not admitted.
func DecideRefused(refused Admission) Decision {
	if refused.WaitUntil.IsZero() {
		return complete(OutcomeNeedsHuman, refused.Rule, refused.Reason)
	}
	return Decision{Action: DecisionWait, Until: refused.WaitUntil, Rule: refused.Rule, Reason: refused.Reason}
}

// Cancelled ends a chain that was cancelled while no session ran.
func Cancelled() Decision {
	return complete(OutcomeAborted, RuleCancelled, "the chain was cancelled")
}

func decideVerdict(policy Policy, tier Tier, verdict Verdict, standing Standing) Decision {
	switch verdict.Status {
	case VerdictHealthy:
		return complete(OutcomeHealthy, RuleVerdict, fmt.Sprintf("%s found everything healthy", tier))
	case VerdictResolved:
		return complete(OutcomeResolved, RuleVerdict, fmt.Sprintf("%s resolved the problem", tier))
	case VerdictNeedsHuman:
		return complete(OutcomeNeedsHuman, RuleVerdict, fmt.Sprintf("%s asks for a person", tier))
	case VerdictFailed:
		return complete(OutcomeFailed, RuleVerdict, fmt.Sprintf("%s could not do its work", tier))
	case VerdictEscalate:
		return decideEscalation(policy, tier, verdict, standing)
	}
	return complete(OutcomeFailed, RuleNoVerdict, fmt.Sprintf("%s gave the unknown verdict %q", tier, verdict.Status))
}

// decideEscalation applies the policy to an escalation that tier asks for: dry run
// first, then the highest tier.
func decideEscalation(policy Policy, tier Tier, verdict Verdict, standing Standing) Decision {
	next := max(verdict.RecommendedTier, tier+1, standing.Floor)
	switch {
	case policy.DryRun:
		return complete(OutcomeSuppressed, RuleDryRun, fmt.Sprintf("%s asks for %s, and this is a dry run", tier, next))
	case len(verdict.Issues) > 1 && tier == TierObserve && tier < policy.MaxTier && !standing.Whole:
		return Decision{
			Action: DecisionSplit, Rule: RuleVerdict,
			Reason: fmt.Sprintf("%s found %d independent issues", tier, len(verdict.Issues)),
		}
	case !next.Valid():
		return complete(OutcomeNeedsHuman, RuleMaxTier, fmt.Sprintf("%s could not resolve the problem, and no tier is higher", tier))
	case next > policy.MaxTier:
		return complete(OutcomeNeedsHuman, RuleMaxTier,
			fmt.Sprintf("%s asks for %s, and %s is the highest allowed", tier, next, policy.MaxTier))
	default:
		return Decision{
			Action: DecisionEscalate, Tier: next, Rule: RuleVerdict,
			Reason: fmt.Sprintf("%s asks for %s", tier, next),
		}
	}
}

// decideNoConversation starts the same tier once more, from a handoff. A session that was
// no resume has no conversation to lose, so the rule cannot repeat itself. Nor has one that went on
// with its own tier's session because a person said so: what instead is for that person to say.
func decideNoConversation(session Session, rule Rule, what string) Decision {
	if session.Continuity != ContinuityResume || session.ParentID == 0 || session.Purpose == PurposeContinuation {
		return complete(OutcomeFailed, rule, withoutVerdict(session))
	}
	return Decision{
		Action: DecisionHandoff, Tier: session.Tier, Rule: rule,
		Reason: fmt.Sprintf("%s %s and starts again from a handoff", session.Tier, what),
	}
}

func complete(outcome Outcome, rule Rule, reason string) Decision {
	return Decision{Action: DecisionComplete, Outcome: outcome, Rule: rule, Reason: reason}
}

func withoutVerdict(session Session) string {
	if session.Error == "" {
		return fmt.Sprintf("%s ended without a verdict (%s)", session.Tier, session.Status)
	}
	return fmt.Sprintf("%s ended without a verdict (%s): %s", session.Tier, session.Status, session.Error)
}
