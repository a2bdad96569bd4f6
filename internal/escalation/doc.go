// Package escalation contains the domain logic of Claude Ops. It defines the tiers and their verdicts. It decides what
// the supervisor does after a session, and how the next session gets its context.
//
// All functions are pure, so that workflows can call them and table tests can cover them. The package reads no clock
// and no configuration, and keeps no state. It imports the standard library and internal/plaintext only.
//
//	            +------------------------------------------------+
//	            v                                                |
//	ChooseContinuity -> (a tier runs) -> Session -> Decide -> escalate
//	                                                  |
//	                                                  +--> retry by handoff
//	                                                  +--> complete (Outcome)
package escalation
