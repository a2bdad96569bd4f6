package daily

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/google/uuid"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

const (
	// maxShown limits the turns on the screen.
	maxShown = 50
	// nearInterval and farInterval are the times between two looks at a conversation with an open turn, on the server
	// of this host and on another one, which may bill each look.
	nearInterval, farInterval = 500 * time.Millisecond, 5 * time.Second
	// serverInterval is the time between two looks through a server's API.
	serverInterval = time.Second
)

// talkOn shows the conversation on a terminal until the person leaves.
func (a *app) talkOn(ctx context.Context, place console.Terminal, name string, o talkOptions) error {
	interval, err := a.talkInterval(ctx)
	if err != nil {
		return err
	}
	showing, stop := context.WithCancel(ctx)
	defer stop()
	model := newTalkModel(a.Clock, name, conversation{a.Operations.Conversations, showing, name, o})
	model.interval = interval
	_, err = tea.NewProgram(model, place.Options(ctx, a.Environ)...).Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("show conversation %s: %w", name, err)
	}
	if model.isOpen() {
		a.Say("The conversation goes on; see the answer with: claudeops talk %s", name)
	}
	return nil
}

// talkInterval returns the time between two looks at a conversation.
func (a *app) talkInterval(ctx context.Context) (time.Duration, error) {
	if a.Operations.Server != "" {
		return serverInterval, nil
	}
	connection, _, err := a.Connect(ctx)
	if err != nil || connection.Local {
		return nearInterval, err
	}
	return farInterval, nil
}

// These are the messages that the screen receives, in addition to those of the terminal.
type (
	// historyMsg holds the latest turns from the records.
	historyMsg struct {
		turns []escalation.TalkTurn
		err   error
	}
	// nowMsg is the conversation at this moment.
	nowMsg struct {
		now operations.LiveConversation
		err error
	}
	// sentMsg says what became of a message.
	sentMsg struct {
		turn     int
		id, text string
		err      error
	}
	// turnEndedMsg is a turn that has ended.
	turnEndedMsg struct {
		turn escalation.TalkTurn
		err  error
	}
	// doneMsg says what became of a request to stop or to carry out a proposal.
	doneMsg struct {
		note string
		err  error
	}
	// lookMsg asks for another look at the conversation.
	lookMsg struct{}
)

// conversation does for the screen what operations do.
type conversation struct {
	console.Conversations

	ctx     context.Context //nolint:containedctx // the commands of a screen have no other way to their context
	name    string
	options talkOptions
}

func (c conversation) history() tea.Msg {
	turns, err := c.History(c.ctx, c.name, maxShown)
	return historyMsg{turns, err}
}

func (c conversation) now() tea.Msg {
	now, err := c.Get(c.ctx, c.name)
	return nowMsg{now, err}
}

func (c conversation) send(id, text string) tea.Msg {
	turn, err := c.Send(c.ctx, c.name, c.options.chain, escalation.TalkMessage{
		MessageID: id, Text: text,
		Actor: c.options.actor,
	})
	return sentMsg{turn, id, text, err}
}

func (c conversation) wait(turn int) tea.Msg {
	ended, err := c.Wait(c.ctx, c.name, turn)
	return turnEndedMsg{ended, err}
}

func (c conversation) stop() tea.Msg {
	turn, err := c.Stop(c.ctx, c.name, 0, c.options.actor)
	return doneMsg{fmt.Sprintf("turn %d is being stopped", turn), err}
}

func (c conversation) confirm(turn, number int) tea.Msg {
	result, err := c.Confirm(c.ctx, c.name, turn, number, operations.Actor{Name: c.options.actor})
	return doneMsg{result, err}
}

// talkModel is the screen of a conversation.
type talkModel struct {
	clock    console.Clock
	name     string
	talk     conversation
	interval time.Duration

	size  tea.WindowSizeMsg
	input textinput.Model
	// turns holds the turns that are known, by number.
	turns []escalation.TalkTurn
	// state is the latest look at the conversation.
	state operations.LiveConversation
	// sending counts the messages that have no turn yet. looking reports whether another look is due.
	sending int
	looking bool
	// unsent holds the IDs of messages that may not have arrived, by their text. Sent again, such a message is answered
	// once.
	unsent map[string]string
	// stopping reports whether the person has stopped the running turn. Another Ctrl-C leaves.
	stopping bool
	note     string
	// back is the number of lines by which the person has scrolled back.
	back int
}

var _ tea.Model = (*talkModel)(nil)

func newTalkModel(clock console.Clock, name string, talk conversation) *talkModel {
	input := textinput.New()
	input.Prompt, input.Placeholder, input.CharLimit = "> ", "your message", escalation.MaxTalkText
	return &talkModel{
		clock: clock, name: name, talk: talk, interval: nearInterval, input: input,
		unsent: map[string]string{},
	}
}

// Init implements tea.Model.
func (m *talkModel) Init() tea.Cmd { return tea.Batch(m.input.Focus(), m.talk.history, m.talk.now) }

// Update implements tea.Model.
func (m *talkModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.size = msg
		m.input.SetWidth(max(msg.Width-len(m.input.Prompt)-1, 1))
		return m, nil
	case tea.KeyPressMsg:
		if cmd, taken := m.press(msg.String()); taken {
			return m, cmd
		}
	case historyMsg:
		if msg.err != nil {
			m.note = "earlier turns cannot be shown: " + msg.err.Error()
		}
		for _, turn := range msg.turns {
			m.keep(turn)
		}
		return m, nil
	case nowMsg:
		cmd := m.see(msg)
		return m, cmd
	case sentMsg:
		cmd := m.sent(msg)
		return m, cmd
	case turnEndedMsg:
		cmd := m.ended(msg)
		return m, cmd
	case doneMsg:
		m.note = msg.note
		if msg.err != nil {
			m.note = msg.err.Error()
		}
		return m, tea.Batch(m.talk.history, m.look())
	case lookMsg:
		m.looking = false
		return m, m.talk.now
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	return m, cmd
}

// press handles a key. It returns false for keys of the input line.
func (m *talkModel) press(key string) (cmd tea.Cmd, taken bool) {
	const page = 10
	switch key {
	case "ctrl+c":
		if !m.isRunning() || m.stopping {
			return tea.Quit, true
		}
		m.stopping, m.note = true, "stopping … Ctrl-C once more leaves"
		return m.talk.stop, true
	case "ctrl+d":
		return tea.Quit, true
	case "pgup":
		m.back += page
		return nil, true
	case "pgdown":
		m.back = max(0, m.back-page)
		return nil, true
	case "enter":
		return m.enter(), true
	}
	return nil, false
}

// enter sends the input line, or does what it says.
func (m *talkModel) enter() tea.Cmd {
	text := strings.TrimSpace(m.input.Value())
	if text == "" {
		return nil
	}
	m.input.Reset()
	m.note, m.back = "", 0
	if number, is := strings.CutPrefix(text, "/yes"); is {
		return m.confirm(strings.TrimSpace(number))
	}
	if text == "/quit" {
		return tea.Quit
	}
	m.sending++
	id := cmp.Or(m.unsent[text], uuid.NewString())
	return func() tea.Msg { return m.talk.send(id, text) }
}

// proposing returns the turns with proposals, without those of which all are confirmed if others are open.
func (m *talkModel) proposing() []escalation.TalkTurn {
	var all, open []escalation.TalkTurn
	for _, turn := range m.turns {
		if len(turn.Proposals) > 0 {
			all = append(all, turn)
		}
		if len(turn.Proposals) > len(turn.Confirmed) {
			open = append(open, turn)
		}
	}
	if len(open) == 0 {
		return all
	}
	return open
}

// labels returns a function that returns what to write to confirm a proposal: /yes N while only one turn proposes
// something, and else /yes TURN.N, so that nobody confirms another proposal than the one that was read.
func (m *talkModel) labels() func(turn, number int) string {
	single := len(m.proposing()) == 1
	return func(turn, number int) string {
		if single {
			return fmt.Sprintf("/yes %d", number)
		}
		return fmt.Sprintf("/yes %d.%d", turn, number)
	}
}

// confirm carries out a proposal as its label names it.
func (m *talkModel) confirm(given string) tea.Cmd {
	proposing := m.proposing()
	if len(proposing) == 0 {
		m.note = "nothing is proposed"
		return nil
	}
	turn := &proposing[len(proposing)-1]
	of, digits, named := strings.Cut(given, ".")
	switch {
	case named:
		number, _ := strconv.Atoi(of) // there is no turn 0
		if turn = m.find(number); turn == nil || len(turn.Proposals) == 0 {
			m.note = fmt.Sprintf("turn %s proposes nothing here: write /yes TURN.N, as beside the proposal", of)
			return nil
		}
	case len(proposing) > 1:
		m.note = "several turns propose something: write /yes TURN.N, as beside the proposal"
		return nil
	default:
		digits = given
	}
	number, err := strconv.Atoi(digits)
	if digits == "" && len(turn.Proposals) == 1 {
		number, err = 1, nil
	}
	if err != nil || number < 1 || number > len(turn.Proposals) {
		m.note = fmt.Sprintf("write /yes and the number of a proposal, 1 to %d", len(turn.Proposals))
		return nil
	}
	m.note = fmt.Sprintf("carrying out proposal %d of turn %d …", number, turn.Turn)
	chosen := turn.Turn
	return func() tea.Msg { return m.talk.confirm(chosen, number) }
}

// sent begins to wait for the turn of a message.
func (m *talkModel) sent(msg sentMsg) tea.Cmd {
	m.sending--
	delete(m.unsent, msg.text)
	if msg.err != nil {
		m.note = msg.err.Error()
		m.input.SetValue(msg.text)
		if !errors.Is(msg.err, operations.ErrOtherMessage) {
			m.unsent[msg.text] = msg.id
		}
		return nil
	}
	m.keep(escalation.TalkTurn{
		Turn: msg.turn, TalkMessage: escalation.TalkMessage{Text: msg.text}, State: escalation.TalkWaiting,
		ReceivedAt: m.clock(),
	})
	return tea.Batch(func() tea.Msg { return m.talk.wait(msg.turn) }, m.look())
}

// ended shows a turn that has ended.
func (m *talkModel) ended(msg turnEndedMsg) tea.Cmd {
	if msg.err != nil {
		m.note = msg.err.Error()
		return nil
	}
	m.stopping = false
	m.keep(msg.turn)
	return m.talk.now
}

// see shows the conversation as it is now, and looks again while a turn is open. A turn that has ended meanwhile is
// read.
func (m *talkModel) see(msg nowMsg) tea.Cmd {
	if msg.err != nil {
		if operations.KindOf(msg.err) != operations.KindNotFound { // a conversation that nobody has begun
			m.note = msg.err.Error()
		}
		return nil
	}
	m.state = msg.now
	var cmds []tea.Cmd
	for _, turn := range msg.now.Turns {
		known := m.find(turn.Turn)
		if turn.State.Final() && known != nil && !known.State.Final() {
			cmds = append(cmds, m.talk.history)
			break
		}
		if !turn.State.Final() && (known == nil || !known.State.Final()) { // also those of other clients
			m.keep(escalation.TalkTurn{
				Turn: turn.Turn, TalkMessage: escalation.TalkMessage{Text: turn.Head},
				State: turn.State,
			})
		}
	}
	if m.isOpen() {
		cmds = append(cmds, m.look())
	}
	return tea.Batch(cmds...)
}

// look looks at the conversation after the interval.
func (m *talkModel) look() tea.Cmd {
	if m.looking {
		return nil
	}
	m.looking = true
	return tea.Tick(m.interval, func(time.Time) tea.Msg { return lookMsg{} })
}

// find returns a known turn; nil if the turn is not known.
func (m *talkModel) find(number int) *escalation.TalkTurn {
	for i := range m.turns {
		if m.turns[i].Turn == number {
			return &m.turns[i]
		}
	}
	return nil
}

// keep adds what is known of a turn.
func (m *talkModel) keep(turn escalation.TalkTurn) {
	known := m.find(turn.Turn)
	if known == nil {
		at, _ := slices.BinarySearchFunc(m.turns, turn.Turn,
			func(t escalation.TalkTurn, number int) int { return t.Turn - number })
		m.turns = slices.Insert(m.turns, at, turn)
		return
	}
	if known.State.Final() && !turn.State.Final() {
		return
	}
	if len(turn.Text) < len(known.Text) { // a look has only the beginning, and an answer does not have it
		turn.Text = known.Text
	}
	if turn.ReceivedAt.IsZero() {
		turn.ReceivedAt, turn.Actor = known.ReceivedAt, known.Actor
	}
	*known = turn
}

// isOpen reports whether a turn has not ended.
func (m *talkModel) isOpen() bool {
	return m.sending > 0 || slices.ContainsFunc(m.turns,
		func(turn escalation.TalkTurn) bool { return !turn.State.Final() })
}

// isRunning reports whether a turn runs that can be stopped.
func (m *talkModel) isRunning() bool {
	return slices.ContainsFunc(m.turns, func(turn escalation.TalkTurn) bool { return !turn.State.Final() })
}
