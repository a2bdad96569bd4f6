package escalation

import "time"

// CallDecision is what the guard decided on one call of an agent, kept so that someone can later ask what the
// agent did, and what it tried.
type CallDecision struct {
	ChainID   string `json:"chain_id"`
	SessionID string `json:"session_id"`
	// Call is the CLI's id of the call. Recording one call of a session twice keeps one decision.
	Call string    `json:"call"`
	Tier Tier      `json:"tier"`
	At   time.Time `json:"at"`
	Tool string    `json:"tool"`
	// Input is what the tool was to get: JSON as text, of which the records keep a limited part.
	Input   string `json:"input"`
	Allowed bool   `json:"allowed"`
	// Rule is the part of the guard's policy that decided.
	Rule string `json:"rule,omitempty"`
	// Reason says in a sentence why the call was denied; empty where it was allowed.
	Reason string `json:"reason,omitempty"`
	// Actions are what the call does to services.
	Actions []CallAction `json:"actions,omitempty"`
}
