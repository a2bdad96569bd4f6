package completions

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

// TestNames checks that names of conversations are valid, and that no person reaches the conversation of another one.
func TestNames(t *testing.T) {
	t.Parallel()
	hello := dialogue{text: "hello"}
	names := map[string]sender{}
	for _, from := range []sender{
		{person: "ada"},
		{person: "bob"},
		{person: "ada", user: "u-1"},
		{person: "ada", chat: "c-1"},
		{person: "ada", chat: "c-1", named: true},
		{person: "ada", user: "u-1", chat: "c-1"},
		{person: "bob", chat: "c-1"},
		{person: "bo", chat: "bc-1"},
		{person: "ada", chat: "../\x00 c-1 " + strings.Repeat("x", 1_000)},
	} {
		name := from.name(hello)
		require.NoError(t, escalation.CheckConversationName(name))
		require.NotContains(t, names, name, "%+v", from)
		names[name] = from
	}
	require.Equal(t, sender{person: "ada"}.name(hello), sender{person: "ada", repeat: "r-1"}.name(hello))
}

// TestMessageIDs checks when a request is a repetition.
func TestMessageIDs(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := New(nil, Options{Clock: func() time.Time { return now }})
	turn := func(id string, state escalation.TalkState, ago time.Duration) []escalation.TalkTurn {
		return []escalation.TalkTurn{{
			TalkMessage: escalation.TalkMessage{MessageID: id}, State: state, EndedAt: now.Add(-ago),
		}}
	}
	own := "key-" + hash("r-1")
	for name, test := range map[string]struct {
		repeat  string
		repeats []escalation.TalkTurn
		want    string
		known   bool
	}{
		"the first":                  {"", nil, "key-0", false},
		"it runs":                    {"", turn("key-0", escalation.TalkRunning, 0), "key-0", true},
		"just answered":              {"", turn("key-0", escalation.TalkAnswered, time.Second), "key-0", true},
		"asked again later":          {"", turn("key-0", escalation.TalkAnswered, time.Hour), "key-1", false},
		"it failed":                  {"", turn("key-0", escalation.TalkFailed, time.Second), "key-1", false},
		"with an ID":                 {"r-1", turn("key-0", escalation.TalkAnswered, time.Second), own, false},
		"with an ID, again":          {"r-1", turn(own, escalation.TalkAnswered, time.Hour), own, true},
		"with an ID, after a failed": {"r-1", turn(own, escalation.TalkFailed, time.Hour), own, true},
	} {
		id, known := s.messageID("key", test.repeat, test.repeats)
		require.Equal(t, test.want, id, name)
		require.Equal(t, test.known, known, name)
	}
}

// TestCompose checks what of a history becomes a part of the message, and that the newest part has room.
func TestCompose(t *testing.T) {
	t.Parallel()
	d := dialogue{instructions: "be brief", text: "and now?"}
	text, err := d.compose([]message{{roleUser, "how is nas?"}, {roleAssistant, "well"}})
	require.NoError(t, err)
	require.Equal(t, "be brief\n\nSaid before:\nuser: how is nas?\nassistant: well\n\nThe message:\nand now?", text)

	long := content(strings.Repeat("ä", 9_000))
	text, err = d.compose([]message{{roleUser, long}, {roleAssistant, long}, {roleUser, "last"}})
	require.NoError(t, err)
	require.LessOrEqual(t, len([]rune(text)), escalation.MaxTalkText)
	require.Equal(t, 1, strings.Count(text, "user: "))
	require.Contains(t, text, "assistant: ä")

	d.text = strings.Repeat("ä", escalation.MaxTalkText)
	text, err = d.compose([]message{{roleUser, "x"}})
	require.NoError(t, err)
	require.Equal(t, d.text, text)
	d.text += "ä"
	_, err = d.compose(nil)
	require.ErrorContains(t, err, "the message has 16001 characters, and at most 16000 are allowed")
}
