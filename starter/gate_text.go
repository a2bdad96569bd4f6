package main

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// maxChainID is how long Temporal lets a workflow ID be: a command with a part of it would be wrong.
const maxChainID = 1_000

// answerCommand is the command that answers a chain's gate.
func answerCommand(chainID string) string { return "starter gate " + operand(chainID) }

// lookCommand is the command that shows a chain.
func lookCommand(chainID string) string { return "starter chain " + operand(chainID) }

// endCommand is the command that ends a chain.
func endCommand(chainID string) string { return "starter cancel " + operand(chainID) }

// operand is the ID of a chain as people copy it into a shell.
func operand(chainID string) string { return workflows.Operand(printable(chainID, maxChainID)) }

// gateText is a gate as a person reads it before they answer, in lines of at most width columns. The
// words of agents in it are made safe for a terminal.
func (a *app) gateText(chainID string, gate escalation.Gate, width int) []string {
	lines := []string{
		cut(fmt.Sprintf("%s of chain %s", gate.ID, printable(chainID, 200)), width),
		cut(fmt.Sprintf("%s, open for %s, %s so far", gate.Tier, span(a.now().Sub(gate.OpenedAt)), dollars(gate.CostUSD)), width),
		"",
	}
	add := func(label, text string) { lines = append(lines, labelled(label, text, width)...) }
	add("Why      ", reasonOf(gate))
	label := "Tried    "
	for _, tried := range gate.Tried {
		add(label, "- "+printable(tried, 300))
		label = strings.Repeat(" ", len(label))
	}
	add("Session  ", continuationOf(gate))
	if !gate.ExpiresAt.IsZero() {
		add("Expires  ", fmt.Sprintf("in %s, at %s: then %s", span(gate.ExpiresAt.Sub(a.now())), a.moment(gate.ExpiresAt), gate.OnTimeout))
	}
	lines = append(lines, "")
	for _, option := range gate.Options {
		add("  "+option.Letter()+"  ", meaningOf(option, gate))
	}
	return lines
}

// continuationOf says which session can be gone on with, or why none can.
func continuationOf(gate escalation.Gate) string {
	if gate.Continuation == nil {
		if gate.NoContinuation == "" {
			return "none can be continued"
		}
		return "cannot be continued: " + printable(gate.NoContinuation, 300)
	}
	return fmt.Sprintf("%s of %s, which ended %s, can be continued",
		printable(gate.Continuation.SessionID, 60), gate.Continuation.Role, gate.Continuation.State)
}

// meaningOf says what an action does at a gate.
func meaningOf(action escalation.GateAction, gate escalation.Gate) string {
	switch action {
	case escalation.GateContinue:
		return "continue session: resume the interrupted agent"
	case escalation.GateFix:
		return fmt.Sprintf("fix: run %s again in a new session", gate.Tier)
	case escalation.GateOverride:
		return "override: accept the state and end the chain"
	case escalation.GateAbort:
		return "abort: end the chain"
	}
	return printable(string(action), 60)
}

// closingOf says how a gate was closed.
func (a *app) closingOf(closing escalation.GateClosing) string {
	who := printable(closing.Actor, escalation.MaxActor)
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
	text += " at " + a.moment(closing.At)
	if closing.Guidance != "" {
		text += fmt.Sprintf(": %s", printable(closing.Guidance, 300))
	}
	return text
}
