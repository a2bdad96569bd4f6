package daily

import (
	"cmp"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/markdown"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// View implements tea.Model.
func (m *talkModel) View() tea.View {
	var lines []string
	for _, turn := range m.turns {
		lines = append(lines, linesOf(m.clock, turn, m.size.Width, m.labels())...)
		if turn.State == escalation.TalkRunning {
			lines = append(lines, m.progress()...)
		}
	}
	below := m.footer()
	room := max(m.size.Height-len(below), 0)
	back := min(m.back, max(0, len(lines)-room))
	lines = lines[:len(lines)-back]
	lines = lines[max(0, len(lines)-room):]
	for len(lines) < room { // the input line stays at the bottom
		lines = append([]string{""}, lines...)
	}
	return console.FullScreen(append(lines, below...), m.size.Height)
}

// footer returns the note, the input line and the help.
func (m *talkModel) footer() []string {
	lines := []string{""}
	if m.note != "" {
		lines = append(lines, console.Labelled("", console.Printable(m.note, 600), m.size.Width)...)
	}
	const keys = "Enter sends, /yes N confirms, Ctrl-C stops a turn or leaves"
	help := fmt.Sprintf("conversation %s  %s  %s", m.name, m.state.CostText(), keys)
	return append(lines, m.input.View(), console.FaintStyle.Render(console.Cut(help, m.size.Width)))
}

// progress returns the latest tool calls of the running turn, and the reply so far.
func (m *talkModel) progress() []string {
	var lines []string
	add := func(text string) {
		lines = append(lines, console.FaintStyle.Render(console.Cut("  "+console.Printable(text, 300), m.size.Width)))
	}
	for _, turn := range m.state.Turns {
		if turn.Waits != "" {
			add("waits: " + turn.Waits)
		}
	}
	if waits := m.state.Attempt.Waits(); waits != "" {
		add(waits)
	}
	if before := m.state.Attempt.Before(); before != "" {
		add(before)
	}
	if m.state.Progress == nil {
		return lines
	}
	for _, call := range m.state.Progress.Now.Tools {
		add(callMark(call.State) + " " + call.Name + "  " + call.Input)
	}
	return append(lines, reply(m.state.Progress.Now.Text, m.size.Width)...)
}

// linesOf returns a turn as lines of at most width columns. The function label returns what to write to confirm a
// proposal.
func linesOf(clock console.Clock, turn escalation.TalkTurn, width int, label func(turn, number int) string) []string {
	head := cmp.Or(turn.Actor, "you")
	if !turn.ReceivedAt.IsZero() {
		head = clock.TimeOfDay(turn.ReceivedAt) + "  " + head
	}
	lines := []string{console.HeadStyle.Render(console.Cut(fmt.Sprintf("%d  %s", turn.Turn,
		console.Printable(head, 200)), width))}
	lines = append(lines, block(turn.Text, width)...)
	switch turn.State {
	case escalation.TalkWaiting, escalation.TalkRunning:
		lines = append(lines, console.FaintStyle.Render(string(turn.State)+" …"))
	case escalation.TalkAnswered:
		lines = append(lines, "")
		if turn.Note != "" {
			lines = append(lines, console.Labelled("! ", console.Printable(turn.Note, 1_000), width)...)
		}
		lines = append(lines, reply(turn.Reply, width)...)
		lines = append(lines, proposals(turn, width, label)...)
	case escalation.TalkFailed, escalation.TalkStopped:
		lines = append(lines, console.Labelled("! ", console.Printable(turn.Failure, 1_000), width)...)
	}
	return append(lines, "")
}

// proposals returns what a turn proposes, and what has become of it.
func proposals(turn escalation.TalkTurn, width int, label func(turn, number int) string) []string {
	var lines []string
	for i, proposal := range turn.Proposals {
		label := fmt.Sprintf("  %s  ", label(turn.Turn, i+1))
		text := console.Printable(proposal.Describe(), escalation.MaxDescription) + " — " +
			console.Printable(proposal.Why, 500)
		for _, confirmed := range turn.Confirmed {
			if confirmed.Proposal == i+1 {
				label = "  done  "
				text = fmt.Sprintf("%s: %s", console.Printable(confirmed.Actor, 100),
					console.Printable(confirmed.Result, 500))
			}
		}
		for _, line := range console.Labelled(label, text, width) {
			lines = append(lines, console.GateStyle.Render(line))
		}
	}
	return lines
}

// reply returns a reply in Markdown as lines of at most width columns. Output that does not go to a terminal has the
// reply as it is.
func reply(text string, width int) []string {
	if width == console.AnyWidth {
		return block(text, width)
	}
	var lines []string
	for _, line := range markdown.Lines(text, width-2) {
		for _, part := range console.Labelled("  "+line.Lead, line.Text, width) {
			part = strings.TrimRight(part, " ")
			if line.Heading {
				part = console.HeadStyle.Render(part)
			}
			lines = append(lines, part)
		}
	}
	return lines
}

// block returns a text of several lines as lines of at most width columns.
func block(text string, width int) []string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(plaintext.Block(text))) {
		lines = append(lines, console.Labelled("  ", strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    "),
			width)...)
	}
	return lines
}
