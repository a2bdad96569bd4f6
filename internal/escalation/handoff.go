package escalation

import (
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// HandoffVersion is the version of the handoff document that this program reads and writes.
const HandoffVersion = 1

// Handoff is the summary for a tier that does not resume the previous tier's conversation.
type Handoff struct {
	SchemaVersion   int           `json:"schema_version"`
	FromTier        Tier          `json:"from_tier"`
	RecommendedTier Tier          `json:"recommended_tier"`
	Summary         string        `json:"summary"`
	Services        []string      `json:"services_affected"`
	Checks          []CheckResult `json:"check_results"`
	Findings        string        `json:"investigation_findings,omitempty"`
	Remediation     string        `json:"remediation_attempted,omitempty"`
	Actions         []Action      `json:"actions,omitempty"`
	Cooldowns       CooldownState `json:"cooldown_state"`
}

// CooldownState holds the use of the cooldowns by service name. Handoffs and agents' cooldown files contain a
// CooldownState. Only the supervisor writes it.
type CooldownState struct {
	Services map[string]ServiceUse `json:"services"`
}

// ServiceUse is a ServiceState without the service's name.
type ServiceUse struct {
	Restarts      Use `json:"restarts"`
	Redeployments Use `json:"redeployments"`
}

// NewCooldownState indexes states by service name.
func NewCooldownState(states []ServiceState) CooldownState {
	services := make(map[string]ServiceUse, len(states))
	for _, state := range states {
		services[state.Service] = ServiceUse{Restarts: state.Restarts, Redeployments: state.Redeployments}
	}
	return CooldownState{Services: services}
}

// NewHandoff builds the handoff to the next tier from the previous tier's verdict and the current cooldowns. If verdict
// is nil, the handoff says that the previous tier has left no verdict.
func NewHandoff(from, next Tier, verdict *Verdict, cooldowns []ServiceState) Handoff {
	handoff := Handoff{
		SchemaVersion: HandoffVersion, FromTier: from, RecommendedTier: next, Cooldowns: NewCooldownState(cooldowns),
	}
	if verdict == nil {
		handoff.Summary = "The tier before left no verdict."
		return handoff
	}
	handoff.Summary = verdict.Summary
	handoff.Services = verdict.Services
	handoff.Checks = verdict.Checks
	handoff.Findings = verdict.Findings
	handoff.Remediation = verdict.Remediation
	handoff.Actions = verdict.Actions
	return handoff
}

// After returns h with a note about cutOff, an earlier session of the receiving tier that was refused or interrupted
// without a verdict. The note says why it was refused, and lists the tool calls of this session that have no result,
// one line for each entry of left.
func (h Handoff) After(cutOff Session, left []string) Handoff {
	note := fmt.Sprintf("An earlier session of %s, %s, was at work on this from %s on and was cut off after %d turns "+
		"without a verdict. "+
		"What it did may have taken effect in full, in part or not at all: check that before anything that changes "+
		"something is repeated.",
		cutOff.Tier, cutOff.SessionID, cutOff.StartedAt.UTC().Format(time.RFC3339), cutOff.Turns)
	if cutOff.Ending == EndingRefused {
		note += "\n\nIt ended because it got this answer: " +
			strings.TrimRight(plaintext.Cut(plaintext.Compact(cutOff.Error), maxRefusal), ".") +
			". If the task cannot be done in this form, say so in the verdict."
	}
	if len(left) > 0 {
		note += "\n\nThese of its calls had no result yet:\n- " + strings.Join(left, "\n- ")
	}
	h.Remediation = strings.TrimSpace(h.Remediation + "\n\n" + note)
	return h
}

// maxRefusal limits the words of a refusal in a handoff, in characters.
const maxRefusal = 400

// MissingFields returns the fields that a handoff requires and that the given verdict leaves empty. A tier that repairs
// must also report its findings and the attempted repairs.
func MissingFields(from Tier, verdict *Verdict) []string {
	if verdict == nil {
		verdict = &Verdict{}
	}
	return NewHandoff(from, from+1, verdict, nil).missing()
}

// missing returns the names of the required fields that are empty, in the order of the schema. Even an agent that has
// nothing to report must say so in the field.
func (h Handoff) missing() []string {
	repaired := h.FromTier >= TierSafeRepair
	var names []string
	for _, field := range []struct {
		name  string
		empty bool
	}{
		{"services_affected", len(h.Services) == 0},
		{"check_results", len(h.Checks) == 0},
		{"investigation_findings", repaired && blank(h.Findings)},
		{"remediation_attempted", repaired && blank(h.Remediation)},
	} {
		if field.empty {
			names = append(names, field.name)
		}
	}
	return names
}
