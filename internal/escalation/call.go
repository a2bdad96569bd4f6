package escalation

import "time"

// CallDecision records the guard's decision on one tool call of an agent. The records show later what the agent
// did and what it tried to do.
type CallDecision struct {
	ChainID   string `json:"chain_id"`
	SessionID string `json:"session_id"`
	// Call is the CLI's ID of the call. Recording the same call of a session twice keeps one decision.
	Call string    `json:"call"`
	Tier Tier      `json:"tier"`
	At   time.Time `json:"at"`
	Tool string    `json:"tool"`
	// Input is the tool's input, JSON as text. The records keep a limited part of it.
	Input   string `json:"input"`
	Allowed bool   `json:"allowed"`
	// Rule names the part of the guard's policy that decided.
	Rule string `json:"rule,omitempty"`
	// Reason explains in a sentence why the call was denied; empty if it was allowed.
	Reason string `json:"reason,omitempty"`
	// Actions are the call's effects on services.
	Actions []CallAction `json:"actions,omitempty"`
}
