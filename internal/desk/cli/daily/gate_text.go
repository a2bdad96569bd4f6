package daily

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

// gateText describes a gate for the person who answers. Each line has at most width columns.
func gateText(clock console.Clock, chainID string, gate escalation.Gate, width int) []string {
	now := clock()
	lines := []string{
		console.Cut(fmt.Sprintf("%s of chain %s", gate.ID, console.Printable(chainID, 200)), width),
		console.Cut(console.Printable(operations.GateSubject(gate), 200), width),
		"",
	}
	add := func(label, text string) { lines = append(lines, console.Labelled(label, text, width)...) }
	for _, fact := range gate.Facts(now) {
		label := fmt.Sprintf("%-9s", fact.Label)
		for _, line := range fact.Lines {
			add(label, console.Printable(line.Text, 600))
			label = strings.Repeat(" ", len(label))
		}
	}
	lines = append(lines, "")
	for _, option := range gate.Options {
		add("  "+option.Letter()+"  ", console.Printable(gate.Meaning(option, now), 600))
	}
	return lines
}

// closingOf describes how a gate was closed.
func closingOf(clock console.Clock, closing escalation.GateClosing) string {
	who := console.Printable(closing.Who(), escalation.MaxActor+len(" (verified)"))
	text := fmt.Sprintf("%s answered %s", who, escalation.InWords(closing.Action))
	switch {
	case closing.Cancelled:
		text = "the chain was cancelled"
	case closing.ToTier != 0:
		text = fmt.Sprintf("a person asked for %s", closing.ToTier)
		if who != "" {
			text = fmt.Sprintf("%s asked for %s", who, closing.ToTier)
		}
	case who == "" && closing.Action == escalation.GateRecheck:
		text = "its incidents were found healed"
	case who == "":
		text = fmt.Sprintf("nobody answered, so it was %s", escalation.InWords(closing.Action))
	}
	text += " at " + clock.Moment(closing.At)
	if closing.Guidance != "" {
		text += fmt.Sprintf(": %s", console.Printable(closing.Guidance, 300))
	}
	return text
}
