// Package escalation is the domain of Claude Ops: tiers, what a tier concludes,
// what the supervisor does about it, and how the next tier gets the context.
//
// Everything here is a value or a pure function, so that a workflow may call it
// and a table may test it. It reads no clock and no configuration, keeps no
// state, and imports the standard library and internal/plaintext only.
//
//	            +------------------------------------------------+
//	            v                                                |
//	ChooseContinuity -> (a tier runs) -> Session -> Decide -> escalate
//	                                                  |
//	                                                  +--> retry by handoff
//	                                                  +--> complete (Outcome)
package escalation
