// Package workflows holds the deterministic part of Claude Ops. The package uses no clock, randomness, configuration or
// I/O. Activities fetch its data, and package escalation makes its decisions.
//
// EscalationChain executes steps, one after the other (step.go):
//
//	begin -> session -> decide -+-> end
//	           ^  ^             +-> session of a higher tier, or of the same tier from a handoff
//	           |  +--- wait <---+-> wait, until a refused session may run
//	           +------ gate <---+-> gate, until a person answers
//
// PlanReview and PhaseExecution (plan.go) take an author and a reviewer through the loop of package review, once for each phase
// of a plan. Conversation answers messages, and Cycle starts the chains of a schedule.
//
// The chain is composed of parts, which the other workflows also use. A part keeps its own small state, and does not
// know the steps of its caller:
//
//	view                the state that people see: queries, search attributes, the Web UI
//	eventLog            events, and the calls that record them
//	sessions            admission, record, agent and end of each session
//	gates               gates: open, remind, answer, expire
//	reviews             checks and review of what a session has committed
//	notifier            sends notifications, and waits for them
//	escalationRequests  the signals by which people request a tier
//	parentLink          the signal to the workflow that waits for this one
//
// testdata holds a recorded history of each branch of a chain, which tests replay.
package workflows
