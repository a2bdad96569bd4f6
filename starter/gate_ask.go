package main

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"github.com/claudeops/claudeops/internal/escalation"
)

// guidanceLines is how high the field for guidance is.
const guidanceLines = 3

// gateForm asks a person for the answer to a gate: what to do, guidance if an agent goes on and none
// was given with the answer, and whether they mean it if the chain is to end.
type gateForm struct {
	*huh.Form
	gate     escalation.Gate
	size     tea.WindowSizeMsg
	reply    string
	guidance string
	sure     bool
}

// newGateForm returns a form for a terminal of that size, and the command that starts it.
func newGateForm(gate escalation.Gate, size tea.WindowSizeMsg) (*gateForm, tea.Cmd) {
	f := &gateForm{gate: gate, size: size}
	start := f.begin()
	return f, start
}

// begin asks from the beginning.
func (f *gateForm) begin() tea.Cmd {
	f.reply, f.guidance, f.sure = "", "", false
	letters := make([]string, 0, len(f.gate.Options))
	for _, option := range f.gate.Options {
		letters = append(letters, option.Letter())
	}
	ask := huh.NewInput().Title("Your answer (" + strings.Join(letters, ", ") + ")").Value(&f.reply).Validate(f.check)
	guide := huh.NewText().Title("Guidance for the agent, or nothing").Value(&f.guidance).
		Lines(guidanceLines).CharLimit(escalation.MaxGuidance).ExternalEditor(false)
	confirm := huh.NewConfirm().Title("The chain ends here. Sure?").Value(&f.sure)
	f.Form = huh.NewForm(
		huh.NewGroup(ask),
		huh.NewGroup(guide).WithHideFunc(func() bool { return f.ends() || f.chosen().Guidance != "" }),
		huh.NewGroup(confirm).WithHideFunc(func() bool { return !f.ends() }),
	).WithTheme(huh.ThemeFunc(huh.ThemeBase16))
	start := f.Init()
	_, fit := f.Update(f.size)
	return tea.Sequence(start, fit)
}

// fill gives the form what happens, and returns the answer when there is one. A person who was not
// sure is asked again.
func (f *gateForm) fill(msg tea.Msg) (*escalation.GateAnswer, tea.Cmd) {
	if size, ok := msg.(tea.WindowSizeMsg); ok {
		if size == f.size {
			return nil, nil // it asks for what it was given, and would lay itself out anew in the middle of an answer
		}
		f.size = size
	}
	_, cmd := f.Update(msg)
	if f.State != huh.StateCompleted {
		return nil, cmd
	}
	answer := f.chosen()
	if f.ends() && !f.sure {
		return nil, f.begin()
	}
	if answer.Guidance == "" {
		answer.Guidance = strings.TrimSpace(f.guidance)
	}
	return &answer, cmd
}

// check says what is wrong with what the person has typed.
func (f *gateForm) check(text string) error {
	if _, err := escalation.ParseGateReply(f.gate, text); err != nil {
		return cleaned(err)
	}
	return nil
}

// chosen is what the person has typed so far; empty while that is no answer.
func (f *gateForm) chosen() escalation.GateAnswer {
	answer, err := escalation.ParseGateReply(f.gate, f.reply)
	if err != nil {
		return escalation.GateAnswer{}
	}
	return answer
}

// ends reports whether the answer ends the chain.
func (f *gateForm) ends() bool {
	action := f.chosen().Action
	return action == escalation.GateOverride || action == escalation.GateAbort
}

// lines are the gate and the form below it.
func (f *gateForm) lines(a *app, chainID string) []string {
	lines := a.gateText(chainID, f.gate, f.size.Width)
	lines[0] = gateStyle.Render(lines[0])
	return append(append(lines, ""), strings.Split(f.View(), "\n")...)
}

// askModel is the screen on which one gate is answered.
type askModel struct {
	app     *app
	chainID string
	gate    escalation.Gate
	form    *gateForm // nil until the size of the screen is known
	answer  *escalation.GateAnswer
}

var _ tea.Model = (*askModel)(nil)

// Init implements tea.Model.
func (m *askModel) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m *askModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	if key, ok := msg.(tea.KeyPressMsg); ok && key.String() == "ctrl+c" {
		return m, tea.Quit
	}
	if size, ok := msg.(tea.WindowSizeMsg); ok && m.form == nil {
		m.form, cmd = newGateForm(m.gate, size)
		return m, cmd
	}
	if m.form == nil || m.answer != nil {
		return m, nil
	}
	if m.answer, cmd = m.form.fill(msg); m.answer != nil {
		return m, tea.Quit
	}
	return m, cmd
}

// View implements tea.Model.
func (m *askModel) View() tea.View {
	if m.form == nil {
		return fullScreen(nil, 0)
	}
	return fullScreen(append(m.form.lines(m.app, m.chainID), "", faintStyle.Render("ctrl+c leaves the gate open")), m.form.size.Height)
}

// ask shows the gate on the terminal and asks for the answer.
func (a *app) ask(ctx context.Context, place terminal, chainID string, gate escalation.Gate) (escalation.GateAnswer, error) {
	model := &askModel{app: a, chainID: chainID, gate: gate}
	_, err := tea.NewProgram(model, place.options(ctx, a.environ)...).Run()
	switch {
	case ctx.Err() != nil:
		return escalation.GateAnswer{}, ctx.Err()
	case err != nil:
		return escalation.GateAnswer{}, fmt.Errorf("ask for the answer: %w", err)
	case model.answer == nil:
		return escalation.GateAnswer{}, fmt.Errorf("nothing was answered: chain %s still waits at %s", chainID, gate.ID)
	}
	return *model.answer, nil
}
