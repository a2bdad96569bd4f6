package escalation

import (
	"fmt"
	"strings"
	"time"
)

// HandoffVersion is the version of the handoff document that this program writes.
const HandoffVersion = 1

// Handoff is the summary that a tier gets when it cannot have the conversation itself.
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
}

// NewHandoff builds the handoff to next from the verdict of the tier before. A nil
// verdict gives a handoff that says that there is nothing to pass on.
func NewHandoff(from, next Tier, verdict *Verdict) Handoff {
	handoff := Handoff{SchemaVersion: HandoffVersion, FromTier: from, RecommendedTier: next}
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

// After returns h with the note that a session of the tier it goes to was at work before, and was
// cut off. What that session did is in no verdict.
func (h Handoff) After(cutOff Session) Handoff {
	note := fmt.Sprintf("An earlier session of %s, %s, was at work on this from %s on and was cut off after %d turns without a verdict. "+
		"What it did may have taken effect in full, in part or not at all: check that before anything that changes something is repeated.",
		cutOff.Tier, cutOff.SessionID, cutOff.StartedAt.UTC().Format(time.RFC3339), cutOff.Turns)
	h.Remediation = strings.TrimSpace(h.Remediation + "\n\n" + note)
	return h
}

// Markdown renders the handoff as a section of a prompt. It all came from an agent,
// which may have copied it from hostile input: table cells are flattened to one line.
func (h Handoff) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Handoff from %s\n\n%s\n", h.FromTier, h.Summary)
	section(&b, "Affected services", bullets(h.Services))
	section(&b, "Checks", checkTable(h.Checks))
	section(&b, "Findings", h.Findings)
	section(&b, "Already tried", h.Remediation)
	section(&b, "Changes made", actionList(h.Actions))
	return b.String()
}

func section(b *strings.Builder, title, body string) {
	if body = strings.TrimSpace(body); body != "" {
		fmt.Fprintf(b, "\n### %s\n\n%s\n", title, body)
	}
}

func bullets(items []string) string {
	var b strings.Builder
	for _, item := range items {
		fmt.Fprintf(&b, "- %s\n", oneLine(item))
	}
	return b.String()
}

func checkTable(checks []CheckResult) string {
	if len(checks) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("| Service | Check | Status | Error |\n|---|---|---|---|\n")
	for _, c := range checks {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", oneLine(c.Service), oneLine(c.CheckType), c.Status, oneLine(c.Error))
	}
	return b.String()
}

func actionList(actions []Action) string {
	var b strings.Builder
	for _, a := range actions {
		result := "succeeded"
		if !a.Succeeded {
			result = "failed"
		}
		fmt.Fprintf(&b, "- %s of %s %s: %s\n", a.Kind, oneLine(a.Service), result, oneLine(a.Detail))
	}
	return b.String()
}

// oneLine makes text safe for a cell or a list item: no line breaks, no pipes.
func oneLine(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}
