package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// maxShownEvents is how many of the latest events are shown, where there is room.
const maxShownEvents = 8

// View implements tea.Model.
func (m *watchModel) View() tea.View {
	above, below := m.overview(), append(m.gate(), m.footer()...)
	events := m.events(min(m.size.Height-len(above)-len(below), maxShownEvents+1))
	return fullScreen(slices.Concat(above, events, below), m.size.Height)
}

// overview is the chain: its sessions, what the last of them does, and what it waits for.
func (m *watchModel) overview() []string {
	if !m.seen {
		return []string{m.cut("chain " + printable(m.id, 200)), m.cut("asking for it …")}
	}
	chain := m.now.chain
	lines := []string{headStyle.Render(m.cut(m.title(chain)))}
	if left := earlierOf(chain); left != "" {
		lines = append(lines, m.cut("  "+left))
	}
	for i := range chain.Sessions {
		lines = append(lines, m.cut(m.session(&chain.Sessions[i])))
	}
	lines = append(lines, m.attempt()...)
	if m.now.progress != nil {
		lines = append(lines, m.calls(*m.now.progress)...)
	}
	if chain.Wait != nil {
		text := fmt.Sprintf("waits %s more: %s", span(chain.Wait.Until.Sub(m.app.now())), printable(chain.Wait.Reason, 300))
		lines = append(lines, labelled("  ", text, m.size.Width)...)
	}
	for _, issue := range chain.Issues {
		lines = append(lines, m.issue(issue)...)
	}
	return lines
}

// title is the chain in a line.
func (m *watchModel) title(chain escalation.Chain) string {
	state := "running"
	switch {
	case chain.Outcome != "":
		state = string(chain.Outcome)
	case chain.OpenGate() != nil:
		state = "waits for a person"
	case chain.Wait != nil:
		state = "waits"
	case m.now.attempt.waits() != "":
		state = m.now.attempt.waits()
	}
	text := fmt.Sprintf("%s  %s  %s  %s", printable(chain.ID, 200), state, dollars(m.now.costUSD()), span(m.app.now().Sub(chain.StartedAt)))
	if len(chain.Services) > 0 {
		text += "  " + printable(strings.Join(chain.Services, ", "), 80)
	}
	return text
}

func (m *watchModel) session(session *escalation.Session) string {
	cost, took := m.now.figures(session, m.app.now())
	return fmt.Sprintf("  %s #%d %s  %s  %s  %s  %s, %s", mark(session.Status), session.ID, session.Tier, printable(session.Model, 40),
		cost, span(took), session.Status, contextOf(session))
}

// attempt is where the session that runs stands, and why the attempt before ended.
func (m *watchModel) attempt() []string {
	var lines []string
	if standing := m.app.standing(m.now); standing != "" {
		lines = append(lines, faintStyle.Render(m.cut("      "+standing)))
	}
	if before := m.now.attempt.before(); before != "" {
		lines = append(lines, labelled("      ", before, m.size.Width)...)
	}
	return lines
}

// calls are the latest tool calls of the session that runs.
func (m *watchModel) calls(progress activities.TierProgress) []string {
	var lines []string
	for _, call := range progress.Now.Tools {
		text := fmt.Sprintf("      %s %s  %s", markOf(call.State), printable(call.Name, 40), printable(call.Input, 160))
		lines = append(lines, m.cut(text))
	}
	return lines
}

func markOf(state activities.ToolState) string {
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

// issue is the chain of one of several issues, and how its gate is answered if it waits at one.
func (m *watchModel) issue(issue escalation.IssueChain) []string {
	state, cost := cmp.Or(string(issue.Outcome), "running"), issue.CostUSD
	live, running := m.now.issues[issue.ChainID]
	if running {
		state, cost = fmt.Sprintf("%s at %s", state, live.Tier()), live.CostUSD
	}
	text := fmt.Sprintf("  issue %s  %s  %s  %s", printable(cmp.Or(issue.ChainID, "without a chain"), 200),
		printable(strings.Join(issue.Services, ", "), 80), dollars(cost), state)
	lines := []string{m.cut(text)}
	if running && live.OpenGate() != nil {
		text := "waits for a person; answer with: " + answerCommand(issue.ChainID)
		lines = append(lines, labelled("      ", text, m.size.Width)...)
	}
	return lines
}

// events are the latest events, below an empty line, in at most room lines.
func (m *watchModel) events(room int) []string {
	events := m.now.chain.Events
	if room < 2 || len(events) == 0 {
		return nil
	}
	lines := []string{""}
	for _, event := range events[max(len(events)-room+1, 0):] {
		lines = append(lines, faintStyle.Render(m.cut(m.app.clock(event.At)+"  "+printable(event.Message, 300))))
	}
	return lines
}

// gate is the open gate with the form that asks for its answer.
func (m *watchModel) gate() []string {
	if m.form == nil {
		return nil
	}
	return append([]string{""}, m.form.lines(m.app, m.now.chain.ID)...)
}

// footer says what became of an answer, and how to leave.
func (m *watchModel) footer() []string {
	lines := []string{""}
	if m.note != "" {
		lines = append(lines, labelled("", m.note, m.size.Width)...)
	}
	if m.away {
		lines = append(lines, m.cut("no worker answers; this is what was seen last"))
	}
	leave := "q leaves; the chain goes on"
	if m.form != nil {
		leave = "ctrl+c leaves; the chain goes on waiting"
	}
	return append(lines, faintStyle.Render(m.cut(leave)))
}

func (m *watchModel) cut(line string) string { return cut(line, m.size.Width) }
