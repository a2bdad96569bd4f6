package escalation

import "strings"

// inWords translates values of the domain that say nothing to a person, or the wrong thing. The values of all types
// share the table: none means two things.
var inWords = map[string]string{ //nolint:gochecknoglobals // a constant table
	// verdicts, outcomes, states of sessions
	"needs_human": "needs a person", "escalate": "asks for a higher tier", "suppressed": "left alone",
	"known": "already known", "overridden": "accepted by a person", "timed_out": "took too long",
	"timedout": "took too long", "budget_exhausted": "budget used up", "resume_failed": "could not be continued",
	"transcript_lost": "the conversation is lost", "look_failed": "the look failed", "complete": "finished",
	// answers
	string(GateContinue): "continue", string(GateRecheck): "look again",
	// why a session has no result
	string(EndingUnusable): "its conversation cannot be continued",
	string(EndingTooLong):  "its answer was too long", string(EndingLimited): "the account's limit is used up",
	string(EndingAccount):  "the provider accepts no key of the worker",
	string(EndingProvider): "the provider does not answer", string(EndingRequest): "the provider refuses the request",
	string(EndingOurLimit): "a limit of Claude Ops", string(EndingGuard): "ended by the guard",
	string(EndingNoResult): "it gave no result",
	// why a chain stops or waits
	string(GateBlocked): "not allowed to go on", string(GateUnresolved): "not repaired",
	string(RuleVerdict): "the agent's result", string(RuleNoVerdict): "the agent gave no result",
	string(RuleMaxTier): "the highest tier allowed", string(RuleOperator): "a person's request",
	string(RuleChainBudget): "the chain's budget", string(RuleDayBudget): "the day's budget",
	string(RuleAccountLimit): "the account's limit", string(RuleCooldown): "restarts are used up",
	string(RuleServiceBusy): "another chain repairs it", string(RuleEscalationLimit): "too many repairs at once",
	string(RuleHandoffInvalid): "the handoff cannot be used", string(RuleGateExpired): "nobody answered in time",
	string(RuleReturned): "it has come back", string(RuleTalksOfPerson): "other conversations come first",
	// reviews
	"not_reviewed": "not reviewed yet", "human_required": "a finding for a person", "auto_fix": "a correction",
}

// InWords returns a value of the domain, such as a status, an outcome, an answer or a rule, as people read it. Programs
// read the value itself.
func InWords[T ~string](value T) string {
	if words, known := inWords[string(value)]; known {
		return words
	}
	return strings.ReplaceAll(string(value), "_", " ")
}
