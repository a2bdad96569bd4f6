package operations

import (
	"encoding/json"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/guard"
)

// Policy says what agents may do, by the policy of this program's settings. Nothing is run.
type Policy struct{ *backend }

// Call is a call on which the guard decides.
type Call struct {
	Tier escalation.Tier `json:"tier"`
	// Tool is the tool that is called; empty for Bash.
	Tool string `json:"tool"`
	// Command is the command of Bash. Input is the input of any tool, a JSON object, in place of a command.
	Command string          `json:"command,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
}

// Decision is what the guard decides on a call.
type Decision struct {
	Call

	Verdict guard.Verdict `json:"verdict"`
	Allowed bool          `json:"allowed"`
	// Rule is the rule that decides. AtRun says what decides on the rest while the command runs; empty if nothing is left.
	Rule  string `json:"rule"`
	AtRun string `json:"at_run,omitempty"`
	// Reason explains a denial in a sentence.
	Reason string `json:"reason"`
	// Actions lists the restarts and redeployments as which the call counts.
	Actions []guard.Action `json:"actions"`
}
