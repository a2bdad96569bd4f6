// Package chain runs chains and the cycles of schedules. EscalationChain executes steps, one after the other (step.go):
//
//	begin -> session -> decide -+-> end
//	           ^  ^             +-> session of a higher tier, or of the same tier from a handoff
//	           |  +--- wait <---+-> wait, until a refused session may run
//	           +------ gate <---+-> gate, until a person answers
package chain
