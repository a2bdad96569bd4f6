package escalation

import "slices"

// Outcome is the final result of a chain.
type Outcome string

// The outcomes.
const (
	OutcomeHealthy  Outcome = "healthy"  // nothing was wrong
	OutcomeResolved Outcome = "resolved" // something was wrong and was repaired, or has healed
	OutcomeApproved Outcome = "approved" // a plan, or all that was done for it, was approved
	OutcomeKnown    Outcome = "known"    // all that is wrong is known, and other chains take care of it
	// OutcomeSuppressed: a dry run suppressed an escalation, or the day's budget was spent before a scheduled look
	OutcomeSuppressed Outcome = "suppressed"
	OutcomeNeedsHuman Outcome = "needs_human" // an operator has to look
	OutcomeOverridden Outcome = "overridden"  // an operator accepted the state as it is
	OutcomeAborted    Outcome = "aborted"     // an operator ended the chain
	OutcomeFailed     Outcome = "failed"      // a tier could not do its work
)

// Outcomes returns all outcomes, the least urgent for an operator first.
func Outcomes() []Outcome { return slices.Clone(outcomesByUrgency) }
