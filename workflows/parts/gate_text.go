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
func describeGate(gate escalation.Gate) string {
	goOn := "no session can be continued: " + gate.NoContinuation
	if gate.Continuation != nil {
		goOn = "session " + gate.Continuation.Describe()
	}
	text := fmt.Sprintf("%s waits for a person at %s, after %s: %s\n%s; options: %s; without an answer until %s: %s",
		gate.ID, gate.Place(), gate.CostText(), plaintext.Cut(gate.Reason, 150), goOn, listOptions(gate),
		gate.ExpiresAt.UTC().Format(time.RFC3339), gate.OnTimeout)
	if len(gate.Tried) > 0 {
		text += "; tried: " + strings.Join(gate.Tried, "; ")
	}
	if len(gate.History) > 0 {
		text += "; earlier repairs: " + strings.Join(gate.History, "; ")
	}
	return text
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

func listOptions(gate escalation.Gate) string {
	words := make([]string, 0, len(gate.Options))
	for _, option := range gate.Options {
		words = append(words, string(option))
	}
	return strings.Join(words, ", ")
}

// gateDetails describes an open gate for the Web UI, including the commands that answer the gate.
func gateDetails(gate escalation.Gate, chainID string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n**%s is open** (%s, %s, since %s, %s so far): %s\n\n",
		Inline(gate.ID), Inline(gate.Place()), Inline(string(gate.Source)), gate.OpenedAt.UTC().Format(time.RFC3339),
		gate.CostText(), Inline(gate.Reason))
	for _, option := range gate.Options {
		fmt.Fprintf(&b, "- `%s` — %s\n", option,
			Inline(gate.Next(escalation.GateClosing{Action: option, Actor: "somebody"})))
	}
	for _, line := range gate.History {
		fmt.Fprintf(&b, "- earlier: %s\n", Inline(line))
	}
	for _, news := range gate.News {
		fmt.Fprintf(&b, "- **%s**\n", Inline(describeNews(news)))
	}
	if gate.NoContinuation != "" {
		fmt.Fprintf(&b, "- no `%s`: %s\n", escalation.GateContinue, Inline(gate.NoContinuation))
	}
	fmt.Fprintf(&b, "\nWithout an answer until %s: `%s`. Answer with one of\n\n```\n%s\n%s\n```\n",
		gate.ExpiresAt.UTC().Format(time.RFC3339), gate.OnTimeout, starterCommand(gate, chainID),
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
