package parts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// describeGate describes an open gate: in the first line shortly, below it all that a person saw who answered.
func describeGate(gate escalation.Gate, now time.Time) string {
	lines := []string{fmt.Sprintf("%s waits for a person at %s, after %s: %s",
		gate.ID, gate.Place(), gate.CostText(), plaintext.Cut(gate.Reason, 150))}
	options := make([]string, 0, len(gate.Options))
	for _, option := range gate.Options {
		options = append(options, escalation.InWords(option))
	}
	lines = append(append(lines, describeFacts(gate, now)...), "Answers: "+strings.Join(options, ", "))
	return strings.Join(lines, "\n")
}

// describeFacts returns what a person needs to know at an open gate, a line for each fact, but for why it is open.
func describeFacts(gate escalation.Gate, now time.Time) []string {
	var lines []string
	for _, fact := range gate.Facts(now.UTC()) {
		for _, line := range fact.Lines {
			text := Plain(line.Text)
			if line.IncidentID != "" && !strings.Contains(text, line.IncidentID) {
				text += " (" + line.IncidentID + ")"
			}
			if fact.Label != escalation.FactWhy {
				lines = append(lines, fact.Label+": "+text)
			}
		}
	}
	return lines
}

// describeAnswers says what each answer does, a line for each.
func describeAnswers(gate escalation.Gate, now time.Time) []string {
	lines := make([]string, 0, len(gate.Options))
	for _, option := range gate.Options {
		lines = append(lines, fmt.Sprintf("%s — %s", option.Letter(), Plain(gate.Meaning(option, now.UTC()))))
	}
	return lines
}

func describeClosing(gate escalation.Gate) string {
	text := fmt.Sprintf("%s is closed: %s", gate.ID, gate.Answer)
	if !gate.Answer.Cancelled {
		text += "; " + gate.Next(*gate.Answer)
	}
	if gate.Answer.Guidance != "" {
		text += "; guidance: " + gate.Answer.Guidance
	}
	return text
}

// describeAnswer says in one line how a person has answered an earlier gate.
func describeAnswer(gate escalation.Gate) string {
	text := fmt.Sprintf("%s: %s", gate.ID, gate.Answer)
	if gate.Answer.Guidance != "" {
		text += fmt.Sprintf(", with the guidance “%s”", Plain(gate.Answer.Guidance))
	}
	return text
}

// gateDetails describes an open gate for the Web UI, including the commands that answer the gate.
func gateDetails(gate escalation.Gate, chainID string, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n**%s is open** (%s)\n\n", Inline(gate.ID), Inline(gate.Place()))
	for _, fact := range gate.Facts(now) {
		for _, line := range fact.Lines {
			fmt.Fprintf(&b, "- %s: %s\n", fact.Label, Inline(line.Text))
		}
	}
	b.WriteString("\n")
	for _, option := range gate.Options {
		meaning := strings.TrimPrefix(gate.Meaning(option, now), escalation.InWords(option)+": ")
		fmt.Fprintf(&b, "- `%s` — %s\n", option, Inline(meaning))
	}
	fmt.Fprintf(&b, "\nAnswer with one of\n\n```\n%s\n%s\n```\n", starterCommand(gate, chainID),
		temporalCommand(gate, chainID))
	return b.String()
}

// suggested returns the action for the example commands: the first option of the gate or, without options, abort.
func suggested(gate escalation.Gate) escalation.GateAction {
	return append(slices.Clip(gate.Options), escalation.GateAbort)[0]
}

func starterCommand(gate escalation.Gate, chainID string) string {
	return fmt.Sprintf("claudeops gate --action %s --guidance '...' --actor NAME %s", suggested(gate), Operand(chainID))
}

func temporalCommand(gate escalation.Gate, chainID string) string {
	// Marshal cannot fail, because all fields are strings.
	answer, _ := json.Marshal(escalation.GateAnswer{
		GateID: gate.ID, Action: suggested(gate), Guidance: "...",
		Actor: "NAME",
	})
	return fmt.Sprintf("temporal workflow update execute --workflow-id %s --name %s --input %s",
		shellWord(chainID), ResolveGate, shellWord(string(answer)))
}

// Operand quotes an ID as the last word of a command line. A workflow ID can contain any character. The quotes prevent
// the shell and the program from interpreting such characters.
func Operand(id string) string {
	if strings.HasPrefix(id, "-") {
		return "-- " + shellWord(id)
	}
	return shellWord(id)
}

// shellWord returns text as one word for a shell. It adds quotes only if text needs them.
func shellWord(text string) string {
	if ordinaryID.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
