package workflows

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/escalation"
)

// EscalateSignalName is the signal by which a person asks a running chain for a higher tier.
const EscalateSignalName = "escalate"

// maxSignalText bounds the words of a signal, in bytes as JSON: they go into prompts and records.
const maxSignalText = 10_000

// EscalateSignal is the payload of the signal.
type EscalateSignal struct {
	// ToTier is the tier to run: 2 or 3.
	ToTier escalation.Tier `json:"to_tier"`
	// Reason says why, for the record.
	Reason string `json:"reason,omitempty"`
	// Guidance goes into the prompt of the tier.
	Guidance string `json:"guidance,omitempty"`
	// Force passes the cooldowns. The highest tier and a dry run hold all the same.
	Force bool `json:"force,omitempty"`

	// problem is the error of decoding the JSON. The SDK would drop the signal without a trace.
	problem error
}

// UnmarshalJSON reads the payload strictly. It returns no error: Validate reports what is wrong.
func (e *EscalateSignal) UnmarshalJSON(data []byte) error {
	type plain EscalateSignal // without methods, so that decoding does not come back here
	var decoded plain
	problem := decodeStrictly(data, &decoded)
	*e = EscalateSignal(decoded)
	e.problem = problem
	return nil
}

// Validate returns the first thing that is wrong with the payload, in one sentence; nil if it is valid.
func (e EscalateSignal) Validate() error {
	if e.problem != nil {
		return e.problem
	}
	if !e.ToTier.Valid() {
		return fmt.Errorf("to_tier %d is not a tier: it must be 1, 2 or 3", int(e.ToTier))
	}
	for _, text := range []struct{ name, value string }{{"reason", e.Reason}, {"guidance", e.Guidance}} {
		if encoded, err := json.Marshal(text.value); err != nil || len(encoded) > maxSignalText {
			return fmt.Errorf("%s has %d bytes as JSON, and at most %d are allowed", text.name, len(encoded), maxSignalText)
		}
	}
	return nil
}

// describeRequest describes a request for the record.
func describeRequest(request EscalateSignal) string {
	text := fmt.Sprintf("a person asks for %s", request.ToTier)
	if request.Force {
		text += ", cooldowns or not"
	}
	if reason := strings.TrimSpace(request.Reason); reason != "" {
		text += ": " + reason
	}
	return text
}
