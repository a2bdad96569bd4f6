package daily

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

// guidanceLines is the height of the input field for guidance.
const guidanceLines = 3

// gateForm asks a person for the answer to a gate. First it asks for the action. If an agent continues after this
// action, and the answer contains no guidance yet, gateForm asks for guidance. If the action ends the chain or accepts
// what is there, gateForm asks for a confirmation.
type gateForm struct {
	Gate escalation.Gate

	form     *huh.Form
	size     tea.WindowSizeMsg
	reply    string
	guidance string
	sure     bool
	// now is the current time for what a choice means. force lets the session begin although restarts are used up.
	now   time.Time
	force bool
}

// newGateForm returns a form for a terminal of the given size. It also returns the command that starts the form.
func newGateForm(gate escalation.Gate, size tea.WindowSizeMsg, now time.Time) (*gateForm, tea.Cmd) {
	f := &gateForm{Gate: gate, size: size, now: now}
	start := f.begin()
	return f, start
}

// begin starts the form from its first question.
func (f *gateForm) begin() tea.Cmd {
	f.reply, f.guidance, f.sure, f.force = "", "", false, false
	letters := make([]string, 0, len(f.Gate.Options))
	for _, option := range f.Gate.Options {
		letters = append(letters, option.Letter())
	}
	ask := huh.NewInput().Title("Your answer (" + strings.Join(letters, ", ") + ")").Value(&f.reply).Validate(f.check)
	guide := huh.NewText().Title("Guidance for the agent, or nothing").Value(&f.guidance).
		Lines(guidanceLines).CharLimit(escalation.MaxGuidance).ExternalEditor(false)
	confirm := huh.NewConfirm().TitleFunc(f.confirmation, &f.reply).Value(&f.sure)
	early := huh.NewConfirm().Title("Restarts are used up. Begin now anyway?").Value(&f.force)
	f.form = huh.NewForm(
		huh.NewGroup(ask),
		huh.NewGroup(guide).WithHideFunc(func() bool { return f.decides() || f.chosen().Guidance != "" }),
		huh.NewGroup(early).WithHideFunc(func() bool { return !f.waits() }),
		huh.NewGroup(confirm).WithHideFunc(func() bool { return !f.decides() }),
	).WithTheme(huh.ThemeFunc(huh.ThemeBase16))
	start := f.form.Init()
	_, fit := f.form.Update(f.size)
	return tea.Sequence(start, fit)
}

// fill passes a message to the form. When the form is complete, fill returns the answer. If the person does not confirm
// it, the form starts again.
func (f *gateForm) fill(msg tea.Msg) (*escalation.GateAnswer, tea.Cmd) {
	if size, ok := msg.(tea.WindowSizeMsg); ok {
		if size == f.size {
			return nil, nil // the form itself requests the size; the same size again would reset the form's layout
		}
		f.size = size
	}
	_, cmd := f.form.Update(msg)
	if f.form.State != huh.StateCompleted {
		return nil, cmd
	}
	answer := f.chosen()
	if f.decides() && !f.sure {
		return nil, f.begin()
	}
	if answer.Guidance == "" {
		answer.Guidance = strings.TrimSpace(f.guidance)
	}
	answer.Force = f.force
	return &answer, cmd
}

// check validates the text that the person has typed as the answer.
func (f *gateForm) check(text string) error {
	if _, err := escalation.ParseGateReply(f.Gate, text); err != nil {
		return console.PrintableError(err)
	}
	return nil
}

// chosen returns the answer that the person has typed. While the typed text is not valid, chosen returns an empty
// answer.
func (f *gateForm) chosen() escalation.GateAnswer {
	answer, err := escalation.ParseGateReply(f.Gate, f.reply)
	if err != nil {
		return escalation.GateAnswer{}
	}
	return answer
}

// decides reports whether after the typed answer no agent works on what the gate is about.
func (f *gateForm) decides() bool {
	action := f.chosen().Action
	return action == escalation.GateOverride || action == escalation.GateAbort
}

// waits reports whether the session of the typed answer must wait, because restarts are used up.
func (f *gateForm) waits() bool {
	action := f.chosen().Action
	_, usedUp := f.Gate.UsedUp(f.now)
	return usedUp && (action == escalation.GateFix || action == escalation.GateContinue)
}

// confirmation asks for a confirmation of the typed answer. An override at a phase of a plan does not end the chain.
func (f *gateForm) confirmation() string {
	if _, ends := f.Gate.Ending(escalation.GateClosing{Action: f.chosen().Action}); ends {
		return "The chain ends here. Sure?"
	}
	return "Accept " + operations.GatePlace(f.Gate) + " as it is. Sure?"
}

// lines returns the text of the gate, and the form below.
func (f *gateForm) lines(clock console.Clock, chainID string) []string {
	lines := gateText(clock, chainID, f.Gate, f.size.Width)
	lines[0] = console.GateStyle.Render(lines[0])
	return append(append(lines, ""), strings.Split(f.form.View(), "\n")...)
}

// askModel is the screen on which a person answers one gate.
type askModel struct {
	clock   console.Clock
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
		m.form, cmd = newGateForm(m.gate, size, m.clock())
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
		return console.FullScreen(nil, 0)
	}
	lines := append(m.form.lines(m.clock, m.chainID), "", console.FaintStyle.Render("ctrl+c leaves the gate open"))
	return console.FullScreen(lines, m.form.size.Height)
}

// askAtGate shows the gate on the terminal, and asks the person for the answer.
func (a *app) askAtGate(
	ctx context.Context, place console.Terminal, chainID string, gate escalation.Gate,
) (escalation.GateAnswer, error) {
	model := &askModel{clock: a.Clock, chainID: chainID, gate: gate}
	_, err := tea.NewProgram(model, place.Options(ctx, a.Environ)...).Run()
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
