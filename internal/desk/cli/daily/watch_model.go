package daily

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

// These are the messages that the screen receives, in addition to operations.Snapshot and the messages of the
// terminal.
type (
	// nobodyMsg says that no worker answers queries.
	nobodyMsg struct{}
	// chainEndedMsg says that the chain has ended, or that the follower failed.
	chainEndedMsg struct {
		chain escalation.Chain
		err   error
	}
	// answeredMsg is the result of an answer to a gate.
	answeredMsg struct {
		gateID string
		next   string
		err    error
	}
)

// watchModel is the screen that follows a chain.
type watchModel struct {
	app *app
	id  string
	// answer sends the answer to a gate, and returns an answeredMsg.
	answer func(escalation.GateAnswer) tea.Msg

	size tea.WindowSizeMsg
	now  operations.Snapshot
	seen bool
	away bool
	// form asks for the answer to the open gate; nil if no gate is open, or if the person has answered the open gate.
	form *gateForm
	// answered is the ID of the gate that was answered last. A snapshot from before the answer can still show this gate
	// as open.
	answered string
	// note describes the result of the last answer.
	note  string
	ended *chainEndedMsg
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
	case operations.Snapshot:
		m.now, m.seen, m.away = msg, true, false
		cmd := m.attend(msg.Chain)
		return m, cmd
	case nobodyMsg:
		m.away = true
		return m, nil
	case answeredMsg:
		cmd := m.conclude(msg)
		return m, cmd
	case chainEndedMsg:
		m.ended = &msg
		return m, tea.Quit
	}
	cmd := m.fill(msg)
	return m, cmd
}

// attend opens the form for a new gate. If the form's gate was closed elsewhere, attend closes the form.
func (m *watchModel) attend(chain escalation.Chain) tea.Cmd {
	gate := chain.OpenGate()
	switch {
	case gate == nil && m.form == nil:
		return nil
	case gate == nil:
		m.note, m.form = m.closing(chain, m.form.Gate.ID), nil
		return nil
	case gate.ID == m.answered, m.form != nil && m.form.Gate.ID == gate.ID:
		return nil
	}
	m.note = ""
	return m.open(*gate)
}

// closing describes how a gate of the chain was closed.
func (m *watchModel) closing(chain escalation.Chain, gateID string) string {
	for _, gate := range chain.Gates {
		if gate.ID == gateID && gate.Answer != nil {
			return gateID + " is closed: " + closingOf(m.app.Clock, *gate.Answer)
		}
	}
	return gateID + " is closed"
}

// open opens the form for a gate.
func (m *watchModel) open(gate escalation.Gate) tea.Cmd {
	var start tea.Cmd
	m.form, start = newGateForm(gate, m.size, m.app.Clock())
	return start
}

// fill passes a message to the form. When the form is complete, fill sends the answer.
func (m *watchModel) fill(msg tea.Msg) tea.Cmd {
	if m.form == nil {
		return nil
	}
	answer, cmd := m.form.fill(msg)
	if answer == nil {
		return cmd
	}
	m.answered, m.note, m.form = m.form.Gate.ID, "answering …", nil
	return func() tea.Msg { return m.answer(*answer) }
}

// conclude shows the result of an answer. If the answer failed and the gate is still open, conclude opens the form
// again.
func (m *watchModel) conclude(msg answeredMsg) tea.Cmd {
	if msg.err == nil {
		m.note = console.Printable(msg.next, 600)
		return nil
	}
	m.note = fmt.Sprintf("%s was not answered: %s", msg.gateID, console.Printable(msg.err.Error(), 600))
	m.answered = ""
	if gate := m.now.Chain.OpenGate(); gate != nil && gate.ID == msg.gateID {
		return m.open(*gate)
	}
	return nil
}
