// Package workflows holds the deterministic part of Claude Ops. It uses no clock, randomness, configuration or I/O:
// activities bring what it knows, and package escalation decides.
//
// EscalationChain takes one step after the other (step.go):
//
//	begin -> session -> decide -+-> end
//	           ^  ^             +-> session of a higher tier, or of the same tier from a handoff
//	           |  +--- wait <---+-> wait, until a session that was refused may run
//	           +------ gate <---+-> gate, until a person answers
//
// It is composed of parts, which the next workflow can use as well. A part keeps its own small state and knows nothing of the
// steps of its caller:
//
//	view                what people see: queries, search attributes, the Web UI
//	eventLog            events, and the calls of the records
//	sessions            admission, record, agent and end of each session
//	gates               gates: open, remind, answer, expire
//	notifier            notifications, and the wait for them
//	escalationRequests  the signals by which people ask for a tier
//	parentLink          the workflow that waits for this one
//
// The history of each branch of a chain is kept in testdata and replayed by tests.
package workflows
