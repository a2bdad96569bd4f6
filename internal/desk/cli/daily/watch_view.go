package daily

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// maxShownEvents limits how many of the latest events are shown.
const maxShownEvents = 8

// View implements tea.Model.
func (m *watchModel) View() tea.View {
	above, below := m.overview(), append(m.gate(), m.footer()...)
	events := m.events(min(m.size.Height-len(above)-len(below), maxShownEvents+1))
	return console.FullScreen(slices.Concat(above, events, below), m.size.Height)
}

// overview returns the lines about the chain: its sessions, the latest tool calls, and why the chain waits.
func (m *watchModel) overview() []string {
	if !m.seen {
		return []string{m.cut("chain " + console.Printable(m.id, 200)), m.cut("asking for it …")}
	}
	chain := m.now.Chain
	lines := []string{console.HeadStyle.Render(m.cut(m.title(chain)))}
	if left := earlierOf(chain); left != "" {
		lines = append(lines, m.cut("  "+left))
	}
	for i := range chain.Sessions {
		lines = append(lines, m.cut(m.session(&chain.Sessions[i])))
	}
	lines = append(lines, m.attempt()...)
	if m.now.Progress != nil {
		lines = append(lines, m.calls(*m.now.Progress)...)
	}
	if chain.Wait != nil {
		text := fmt.Sprintf("waits %s more: %s",
			plaintext.Span(chain.Wait.Until.Sub(m.app.Clock())), console.Printable(chain.Wait.Reason, 300))
		lines = append(lines, console.Labelled("  ", text, m.size.Width)...)
	}
	for _, issue := range chain.Issues {
		lines = append(lines, m.issue(issue)...)
	}
	return lines
}

// title describes the chain in one line.
func (m *watchModel) title(chain escalation.Chain) string {
	state := "running"
	switch {
	case chain.Outcome != "":
		state = escalation.InWords(chain.Outcome)
	case chain.OpenGate() != nil:
		state = "waits for a person"
	case chain.Wait != nil:
		state = "waits"
	case m.now.Attempt.Waits() != "":
		state = m.now.Attempt.Waits()
	}
	text := fmt.Sprintf("%s  %s  %s  %s",
		console.Printable(chain.ID, 200), state, m.now.CostText(), plaintext.Span(m.app.Clock().Sub(chain.StartedAt)))
	if len(chain.Services) > 0 {
		text += "  " + console.Printable(strings.Join(chain.Services, ", "), 80)
	}
	return text
}

func (m *watchModel) session(session *escalation.Session) string {
	cost, took := figuresOf(m.now, session, m.app.Clock())
	return fmt.Sprintf("  %s #%d %s  %s  %s  %s  %s, %s",
		markOf(session.Status), session.ID, session.Tier, console.Printable(session.Model, 40), cost,
		plaintext.Span(took), escalation.InWords(session.Status), operations.SessionContext(session))
}

// attempt returns the status of the running session, and why its previous attempt ended.
func (m *watchModel) attempt() []string {
	var lines []string
	if status := statusOf(m.app.Clock, m.now); status != "" {
		lines = append(lines, console.FaintStyle.Render(m.cut("      "+status)))
	}
	if before := m.now.Attempt.Before(); before != "" {
		lines = append(lines, console.Labelled("      ", before, m.size.Width)...)
	}
	return lines
}

// calls returns the latest tool calls of the running session.
func (m *watchModel) calls(progress activities.TierProgress) []string {
	var lines []string
	for _, call := range progress.Now.Tools {
		text := fmt.Sprintf("      %s %s  %s", callMark(call.State), console.Printable(call.Name, 40),
			console.Printable(call.Input, 160))
		lines = append(lines, m.cut(text))
	}
	return lines
}

// callMark returns the symbol for the state of a tool call.
func callMark(state activities.ToolState) string {
	switch state {
	case activities.ToolRunning:
		return "…"
	case activities.ToolDone:
		return "✓"
	case activities.ToolFailed:
		return "✗"
	}
	return "?"
}

// issue describes the chain of an issue. If that chain waits at a gate, issue adds the command that answers the gate.
func (m *watchModel) issue(issue escalation.IssueChain) []string {
	state, cost := cmp.Or(escalation.InWords(issue.Outcome), "running"), issue.CostText()
	live, running := m.now.Issues[issue.ChainID]
	if running {
		state, cost = fmt.Sprintf("%s at %s", state, live.Tier()), live.CostText()
	}
	text := fmt.Sprintf("  issue %s  %s  %s  %s", console.Printable(cmp.Or(issue.ChainID, "without a chain"), 200),
		console.Printable(strings.Join(issue.Services, ", "), 80), cost, state)
	lines := []string{m.cut(text)}
	if running && live.OpenGate() != nil {
		text := "waits for a person; answer with: " + console.AnswerCommand(issue.ChainID)
		lines = append(lines, console.Labelled("      ", text, m.size.Width)...)
	}
	return lines
}

// events returns an empty line and the latest events, one on each line. It returns no more lines than room.
func (m *watchModel) events(room int) []string {
	events := m.now.Chain.Events
	if room < 2 || len(events) == 0 {
		return nil
	}
	lines := []string{""}
	for _, event := range events[max(len(events)-room+1, 0):] {
		line := m.app.Clock.TimeOfDay(event.At) + "  " + console.Printable(event.Message, 300)
		lines = append(lines, console.FaintStyle.Render(m.cut(line)))
	}
	return lines
}

// gate returns the open gate and the form for its answer.
func (m *watchModel) gate() []string {
	if m.form == nil {
		return nil
	}
	return append([]string{""}, m.form.lines(m.app.Clock, m.now.Chain.ID)...)
}

// footer returns the result of the last answer, and the name of the key that closes the screen.
func (m *watchModel) footer() []string {
	lines := []string{""}
	if m.note != "" {
		lines = append(lines, console.Labelled("", m.note, m.size.Width)...)
	}
	if m.away {
		lines = append(lines, m.cut("no worker answers; this is what was seen last"))
	}
	leave := "q leaves; the chain goes on"
	if m.form != nil {
		leave = "ctrl+c leaves; the chain goes on waiting"
	}
	return append(lines, console.FaintStyle.Render(m.cut(leave)))
}

func (m *watchModel) cut(line string) string { return console.Cut(line, m.size.Width) }
