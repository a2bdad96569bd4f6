package daily

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

// screenTalks records what a screen sends and confirms.
type screenTalks struct {
	console.Conversations

	sent      []escalation.TalkMessage
	confirmed [][2]int
	err       error
}

func (s *screenTalks) Send(_ context.Context, _, _ string, message escalation.TalkMessage) (int, error) {
	s.sent = append(s.sent, message)
	return len(s.sent), s.err
}

func (s *screenTalks) Confirm(_ context.Context, _ string, turn, number int, _ operations.Actor) (string, error) {
	s.confirmed = append(s.confirmed, [2]int{turn, number})
	return "done", nil
}

// screen returns a screen with turns, and a function that writes a line on it.
func screen(t *testing.T, talks *screenTalks, turns ...escalation.TalkTurn) (*talkModel, func(line string)) {
	t.Helper()
	m := newTalkModel(time.Now, "ada", conversation{talks, t.Context(), "ada", talkOptions{actor: "ada"}})
	m.size.Width, m.size.Height = 100, 60
	m.turns = turns
	return m, func(line string) {
		m.input.SetValue(line)
		if cmd := m.enter(); cmd != nil {
			if sent, ok := cmd().(sentMsg); ok {
				m.sent(sent)
			}
		}
	}
}

func proposing(turn int, prompts ...string) escalation.TalkTurn {
	one := escalation.TalkTurn{Turn: turn, State: escalation.TalkAnswered}
	for _, prompt := range prompts {
		one.Proposals = append(one.Proposals, escalation.Proposal{Kind: escalation.ProposeChain, Prompt: prompt})
	}
	return one
}

func (m *talkModel) text() string { return m.View().Content }

// TestScreenNamesProposals confirms proposals while one turn proposes something, and while several do.
func TestScreenNamesProposals(t *testing.T) {
	t.Parallel()
	talks := &screenTalks{}
	long := strings.Repeat("look at nas ", 160) + "the end"
	m, write := screen(t, talks, proposing(3, "look", long))
	require.Contains(t, m.text(), "/yes 1  start a chain")
	require.Contains(t, strings.Join(strings.Fields(m.text()), " "), "the end”", "all of it is shown")
	write("/yes 2")
	require.Equal(t, [][2]int{{3, 2}}, talks.confirmed)

	m.keep(proposing(4, "override"))
	require.Contains(t, m.text(), "/yes 3.1  start a chain")
	require.Contains(t, m.text(), "/yes 4.1  start a chain")
	for _, vague := range []string{"/yes 1", "/yes", "/yes 5.1", "/yes 3.9", "/yes 3."} {
		write(vague)
	}
	require.Len(t, talks.confirmed, 1, "it is not clear which is meant")
	write("/yes 3.1")
	require.Equal(t, [2]int{3, 1}, talks.confirmed[1])

	confirmed := proposing(4, "override")
	confirmed.Confirmed = []escalation.Confirmation{{Proposal: 1, Actor: "bob"}}
	m.keep(confirmed)
	write("/yes 1")
	require.Equal(t, [2]int{3, 1}, talks.confirmed[2], "the only open turn")
}

// TestScreenSendsAgain sends a message again after a time-out, changed and unchanged.
func TestScreenSendsAgain(t *testing.T) {
	t.Parallel()
	talks := &screenTalks{err: errors.New("no answer within 30s")}
	m, write := screen(t, talks)
	write("how is nas?")
	require.Equal(t, "how is nas?", m.input.Value(), "what was typed is kept")
	write("how is nas?")
	write("how is jellyfin?")
	talks.err = nil
	write("how is nas?")
	write("how is nas?")
	ids := map[string]int{}
	for _, message := range talks.sent {
		ids[message.MessageID]++
	}
	require.Equal(t, talks.sent[0].MessageID, talks.sent[1].MessageID)
	require.Equal(t, talks.sent[0].MessageID, talks.sent[3].MessageID)
	require.NotEqual(t, talks.sent[0].MessageID, talks.sent[4].MessageID, "it has arrived, and is asked again")
	require.Len(t, ids, 3)
}
