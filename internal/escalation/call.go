package escalation

import (
	"strings"
	"time"
)

// CallDecision records the guard's decision on one tool call of an agent. With these records people can later see all
// calls of an agent, including the denied calls.
type CallDecision struct {
	ChainID   string `json:"chain_id"`
	SessionID string `json:"session_id"`
	// Call is the CLI's ID of the call. If the decision is on a program that the call started, # and a number follow.
	// The records keep one decision for each value.
	Call string    `json:"call"`
	Tier Tier      `json:"tier"`
	At   time.Time `json:"at"`
	Tool string    `json:"tool"`
	// Input is the tool's input, as JSON text. The records keep only a limited part of the text.
	Input   string `json:"input"`
	Allowed bool   `json:"allowed"`
	// Rule names the part of the guard's policy that led to the decision.
	Rule string `json:"rule,omitempty"`
	// Reason explains in a sentence why the call was denied; empty if the call was allowed.
	Reason string `json:"reason,omitempty"`
	// Actions are the call's effects on services.
	Actions []CallAction `json:"actions,omitempty"`
}

// OfProgram reports whether the decision is on a program that the call started, and not on the whole call.
func (d CallDecision) OfProgram() bool { return strings.Contains(d.Call, "#") }
