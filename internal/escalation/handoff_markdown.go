package escalation

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// Markdown renders the handoff as a section of a prompt. Nearly all of the content comes from an agent, which may have
// copied hostile input. The content must not look like a heading or an entry of the supervisor. Therefore Markdown
// quotes long texts line by line, and puts every other value on one line.
func (h Handoff) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Escalation Context (from Tier %d)\n", int(h.FromTier))
	if summary := quoted(h.Summary); summary != "" {
		fmt.Fprintf(&b, "\n%s\n", summary)
	}
	section(&b, "Affected Services", bullets(h.Services))
	section(&b, "Check Results", checkTable(h.Checks))
	section(&b, "Investigation Findings", quoted(h.Findings))
	section(&b, "Remediation Attempted", quoted(h.Remediation))
	section(&b, "Actions Taken", actionList(h.Actions))
	section(&b, "Cooldown State", h.Cooldowns.markdown())
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
		fmt.Fprintf(&b, "- %s\n", name(item))
	}
	return b.String()
}

func checkTable(checks []CheckResult) string {
	if len(checks) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("| Service | Check Type | Status | Error |\n|---|---|---|---|\n")
	for _, c := range checks {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name(c.Service), name(c.CheckType), name(string(c.Status)),
			oneLine(c.Error))
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
		fmt.Fprintf(&b, "- %s of %s %s: %s\n", name(string(a.Kind)), name(a.Service), result, oneLine(a.Detail))
	}
	return b.String()
}

// markdown renders c as a JSON code block; "" if c is empty. The cooldown file of an agent has the same JSON. The name
// of a service cannot close the code block, because JSON encodes line breaks as \n.
func (c CooldownState) markdown() string {
	if len(c.Services) == 0 {
		return ""
	}
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return "" // happens only for a time after the year 9999, which no ledger holds
	}
	return "```json\n" + plaintext.Block(string(text)) + "\n```"
}

// quoted puts "> " in front of every line of text. It returns "" for blank text.
func quoted(text string) string {
	text = strings.TrimSpace(plaintext.Block(text))
	if text == "" {
		return ""
	}
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}

// longestName limits the displayed part of a name, in characters. Valid names of services are shorter.
const longestName = 2 * MaxServiceName

// name returns a short text on one line, cut to longestName characters and with the delimiters escaped.
func name(text string) string { return oneLine(cut(text, longestName)) }

var inCell = strings.NewReplacer(`\`, `\\`, "|", `\|`)

// oneLine puts text on one line and escapes the delimiters, for a table cell or a list item.
func oneLine(text string) string { return inCell.Replace(plaintext.Compact(text)) }
