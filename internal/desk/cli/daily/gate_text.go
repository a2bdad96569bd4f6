package daily

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// gateText describes a gate for the person who answers. Each line has at most width columns.
func gateText(clock console.Clock, chainID string, gate escalation.Gate, width int) []string {
	lines := []string{
		console.Cut(fmt.Sprintf("%s of chain %s", gate.ID, console.Printable(chainID, 200)), width),
		console.Cut(fmt.Sprintf("%s, open for %s, %s so far", console.Printable(operations.GateSubject(gate), 200),
			plaintext.Span(clock().Sub(gate.OpenedAt)), gate.CostText()), width),
		"",
	}
	add := func(label, text string) { lines = append(lines, console.Labelled(label, text, width)...) }
	add("Why      ", reasonOf(gate))
	label := "Tried    "
	for _, tried := range gate.Tried {
		add(label, "- "+console.Printable(tried, 300))
		label = strings.Repeat(" ", len(label))
	}
	label = "Earlier  "
	for _, line := range gate.History {
		add(label, "- "+console.Printable(line, 300))
		label = strings.Repeat(" ", len(label))
	}
	for _, news := range gate.News {
		add("News     ", newsOf(clock, news))
	}
	add("Session  ", continuationOf(gate))
	if !gate.ExpiresAt.IsZero() {
		add("Expires  ", fmt.Sprintf("in %s, at %s: then %s",
			plaintext.Span(gate.ExpiresAt.Sub(clock())), clock.Moment(gate.ExpiresAt), gate.OnTimeout))
	}
	lines = append(lines, "")
	for _, option := range gate.Options {
		add("  "+option.Letter()+"  ", operations.AnswerMeaning(option, gate))
	}
	return lines
}

// continuationOf names the session that an answer can continue. If no session can be continued, it returns the reason.
func continuationOf(gate escalation.Gate) string {
	switch {
	case gate.Continuation != nil:
		return console.Printable(gate.Continuation.Describe(), 200)
	case gate.NoContinuation == "":
		return "none can be continued"
	default:
		return "cannot be continued: " + console.Printable(gate.NoContinuation, 300)
	}
}

// newsOf describes what another chain has found about an incident.
func newsOf(clock console.Clock, news escalation.GateNews) string {
	text := fmt.Sprintf("%s is %s since %s, says chain %s",
		console.Printable(news.IncidentID, 60), news.Status, clock.Moment(news.At),
		console.Printable(news.ChainID, 200))
	if news.Actor != "" {
		text = fmt.Sprintf("%s was closed by %s at %s", console.Printable(news.IncidentID, 60),
			console.Printable(news.Actor, escalation.MaxActor), clock.Moment(news.At))
	}
	if news.Note != "" {
		text += ": " + console.Printable(news.Note, 300)
	}
	return text
}

// reasonOf returns the source and the reason of a gate on one line.
func reasonOf(gate escalation.Gate) string {
	return fmt.Sprintf("%s: %s", gate.Source, console.Printable(gate.Reason, 300))
}

// closingOf describes how a gate was closed.
func closingOf(clock console.Clock, closing escalation.GateClosing) string {
	who := console.Printable(closing.Who(), escalation.MaxActor+len(" (verified)"))
	text := fmt.Sprintf("%s answered %s", who, closing.Action)
	switch {
	case closing.Cancelled:
		text = "the chain was cancelled"
	case closing.ToTier != 0:
		text = fmt.Sprintf("a person asked for %s", closing.ToTier)
		if who != "" {
			text = fmt.Sprintf("%s asked for %s", who, closing.ToTier)
		}
	case who == "":
		text = fmt.Sprintf("nobody answered, so it was %s", closing.Action)
	}
	text += " at " + clock.Moment(closing.At)
	if closing.Guidance != "" {
		text += fmt.Sprintf(": %s", console.Printable(closing.Guidance, 300))
	}
	return text
}
