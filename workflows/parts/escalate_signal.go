package parts

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/escalation"
)

// EscalateSignalName is the name of the signal with which a person requests a higher tier.
const EscalateSignalName = "escalate"

// maxSignalText limits each text of a signal, in bytes of its JSON.
const maxSignalText = 10_000

// EscalateSignal is the payload of the escalate signal.
type EscalateSignal struct {
	// ToTier is the tier to run, at most 3. It must be higher than the tier of the latest session.
	ToTier escalation.Tier `json:"to_tier"`
	// Reason is the person's reason for the request. The records contain it.
	Reason string `json:"reason,omitempty"`
	// Guidance goes into the prompt of the tier.
	Guidance string `json:"guidance,omitempty"`
	// Force skips the cooldowns. It does not override the highest tier or a dry run.
	Force bool `json:"force,omitempty"`
	// Actor names the person who asks, for the record; empty if the client does not say. Verified reports that the
	// person has logged in to the server of the pages under this name.
	Actor    string `json:"actor,omitempty"`
	Verified bool   `json:"verified,omitempty"`

	// problem is the error from decoding the JSON. The SDK would drop an undecodable signal silently. So
	// UnmarshalJSON stores the error here, and Validate returns the error.
	problem error
}

// UnmarshalJSON refuses unknown fields. It stores a decoding error in the problem field and returns nil. Validate
// returns the stored error.
func (e *EscalateSignal) UnmarshalJSON(data []byte) error {
	type plain EscalateSignal // has no UnmarshalJSON, which would call itself
	var decoded plain
	problem := DecodeStrictly(data, &decoded)
	*e = EscalateSignal(decoded)
	e.problem = problem
	return nil
}

// Validate returns the first error in the payload, as one sentence. If the payload is valid, it returns nil.
func (e EscalateSignal) Validate() error {
	if e.problem != nil {
		return e.problem
	}
	if !e.ToTier.Valid() {
		return fmt.Errorf("to_tier %d is not a tier: it must be 1, 2 or 3", int(e.ToTier))
	}
	if e.Actor != "" {
		if err := escalation.CheckActor(e.Actor); err != nil {
			return err
		}
	}
	for _, text := range []struct{ name, value string }{{"reason", e.Reason}, {"guidance", e.Guidance}} {
		if encoded, err := json.Marshal(text.value); err != nil || len(encoded) > maxSignalText {
			return fmt.Errorf("%s has %d bytes as JSON, and at most %d are allowed", text.name, len(encoded),
				maxSignalText)
		}
	}
	return nil
}

// describeRequest describes a request for the event log.
func describeRequest(request EscalateSignal) string {
	who := "a person"
	if request.Actor != "" {
		who = escalation.GateClosing{Actor: request.Actor, Verified: request.Verified}.Who()
	}
	text := fmt.Sprintf("%s asks for %s", who, request.ToTier)
	if request.Force {
		text += ", cooldowns or not"
	}
	if reason := strings.TrimSpace(request.Reason); reason != "" {
		text += ": " + reason
	}
	return text
}
