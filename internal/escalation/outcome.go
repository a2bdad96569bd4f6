package escalation

import "slices"

// Outcome is how a chain ended.
type Outcome string

// The outcomes.
const (
	OutcomeHealthy    Outcome = "healthy"     // nothing was wrong
	OutcomeResolved   Outcome = "resolved"    // something was wrong and was repaired
	OutcomeSuppressed Outcome = "suppressed"  // an escalation was asked for, and a dry run forbade it
	OutcomeNeedsHuman Outcome = "needs_human" // a person has to look
	OutcomeOverridden Outcome = "overridden"  // a person accepted the state as it is
	OutcomeAborted    Outcome = "aborted"     // a person ended the chain
	OutcomeFailed     Outcome = "failed"      // a tier could not do its work
)

// Outcomes lists every outcome, the one that concerns a person least first.
func Outcomes() []Outcome { return slices.Clone(concerns) }
