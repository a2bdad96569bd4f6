package escalation

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/plaintext"
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
func (d *CallDecision) OfProgram() bool { return strings.Contains(d.Call, "#") }

// CallSubject returns the most informative field of a call's input. If the input has no known field, CallSubject
// returns the whole input.
func CallSubject(input string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(input), &fields) == nil {
		for _, key := range []string{"command", "file_path", "pattern", "url", "path", "description", "summary"} {
			if text, ok := fields[key].(string); ok && text != "" {
				return text
			}
		}
	}
	return input
}

// Describe says in a line what the call was about and, if it was denied, why.
func (d *CallDecision) Describe() string {
	text := cut(plaintext.Compact(CallSubject(d.Input)), maxDescribedCall)
	if d.Reason != "" {
		text += ": " + cut(plaintext.Compact(d.Reason), maxDescribedCall)
	}
	return text
}

// maxDescribedCall limits a call, and the reason for its denial, in a sentence, in characters.
const maxDescribedCall = 160
