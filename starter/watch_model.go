package main

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/claudeops/claudeops/internal/escalation"
)

// What happens beside keys. What is seen of the chain arrives as a sight.
type (
	// nobodyMsg says that no worker answers.
	nobodyMsg struct{}
	// endedMsg says that there is nothing more to see.
	endedMsg struct {
		chain escalation.Chain
		err   error
	}
	// answeredMsg says what became of an answer.
	answeredMsg struct {
		gateID string
		next   string
		err    error
	}
)

// watchModel is the screen on which a chain is followed.
type watchModel struct {
	app *app
	id  string
	// answer answers a gate, and returns an answeredMsg.
	answer func(escalation.GateAnswer) tea.Msg

	size tea.WindowSizeMsg
	now  sight
	seen bool
	away bool
	// form asks for the answer to the open gate; nil if there is none, or it was answered.
	form *gateForm
	// answered is the gate that was answered here last: a sight from before may still show it open.
	answered string
	// note says what became of an answer.
	note  string
	ended *endedMsg
}

var _ tea.Model = (*watchModel)(nil)

// Init implements tea.Model.
func (m *watchModel) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m *watchModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.size = msg
	case tea.KeyPressMsg:
		if msg.String() == "ctrl+c" || m.form == nil && msg.String() == "q" {
			return m, tea.Quit
		}
	case sight:
		m.now, m.seen, m.away = msg, true, false
		cmd := m.attend(msg.chain)
		return m, cmd
	case nobodyMsg:
		m.away = true
		return m, nil
	case answeredMsg:
		cmd := m.conclude(msg)
		return m, cmd
	case endedMsg:
		m.ended = &msg
		return m, tea.Quit
	}
	cmd := m.fill(msg)
	return m, cmd
}

// attend opens the form for a gate that has opened, and drops it when the gate was closed elsewhere.
func (m *watchModel) attend(chain escalation.Chain) tea.Cmd {
	gate := chain.OpenGate()
	switch {
	case gate == nil && m.form == nil:
		return nil
	case gate == nil:
		m.note, m.form = m.closing(chain, m.form.gate.ID), nil
		return nil
	case gate.ID == m.answered, m.form != nil && m.form.gate.ID == gate.ID:
		return nil
	}
	m.note = ""
	return m.open(*gate)
}

// closing says how a gate of the chain was closed.
func (m *watchModel) closing(chain escalation.Chain, gateID string) string {
	for _, gate := range chain.Gates {
		if gate.ID == gateID && gate.Answer != nil {
			return gateID + " is closed: " + m.app.closingOf(*gate.Answer)
		}
	}
	return gateID + " is closed"
}

// open asks for the answer to a gate.
func (m *watchModel) open(gate escalation.Gate) tea.Cmd {
	var start tea.Cmd
	m.form, start = newGateForm(gate, m.size)
	return start
}

// fill gives what the person does to the form, and sends its answer when there is one.
func (m *watchModel) fill(msg tea.Msg) tea.Cmd {
	if m.form == nil {
		return nil
	}
	answer, cmd := m.form.fill(msg)
	if answer == nil {
		return cmd
	}
	m.answered, m.note, m.form = m.form.gate.ID, "answering …", nil
	return func() tea.Msg { return m.answer(*answer) }
}

// conclude shows what became of an answer. A refused one can be given again, if the gate is still open.
func (m *watchModel) conclude(msg answeredMsg) tea.Cmd {
	if msg.err == nil {
		m.note = printable(msg.next, 600)
		return nil
	}
	m.note = fmt.Sprintf("%s was not answered: %s", msg.gateID, printable(msg.err.Error(), 600))
	m.answered = ""
	if gate := m.now.chain.OpenGate(); gate != nil && gate.ID == msg.gateID {
		return m.open(*gate)
	}
	return nil
}
