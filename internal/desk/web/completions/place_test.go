package completions

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/web/access"
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
	require.Equal(t, sender{person: "ada"}.name(hello), sender{person: "ada", request: "r-1"}.name(hello))
}

// TestRepetitions checks when a request is a repetition, and that the ID of a message is never that of another one: not
// if old turns were removed, and not if two requests arrive before one is stored.
func TestRepetitions(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := newBook()
	s := New(b, Options{Clock: func() time.Time { return now }})
	question := dialogue{text: "how is nas?"}
	id := func(from sender, d dialogue) (string, *escalation.TalkTurn) {
		id, before, err := s.identify(t.Context(), from, d, place{name: from.name(d), message: escalation.TalkMessage{Key: firstKey(d)}})
		require.NoError(t, err)
		return id, before
	}
	ada, named := sender{person: "ada"}, sender{person: "ada", chat: "ops", named: true}
	given := map[string]bool{}
	ask := func(from sender, state escalation.TalkState, ago time.Duration) {
		t.Helper()
		first, before := id(from, question)
		require.Nil(t, before)
		now = now.Add(61 * time.Minute)
		second, _ := id(from, question)
		now = now.Add(-61 * time.Minute)
		require.Equal(t, first, second, "two requests before one is stored are one message, however long the records are away")
		require.NotContains(t, given, first)
		given[first] = true
		name := from.name(question)
		b.turns[name] = append(b.turns[name], escalation.TalkTurn{
			ConversationID: escalation.ConversationPrefix + name, Turn: len(given), State: state, EndedAt: now.Add(-ago),
			TalkMessage: escalation.TalkMessage{MessageID: first, Text: question.text, Actor: "ada", Key: firstKey(question)},
		})
	}
	for day := range 90 { // each question is answered anew, although turns older than a month are removed
		ask(ada, escalation.TalkAnswered, repeatWindow)
		now = now.Add(24 * time.Hour)
		if name := ada.name(question); day >= 31 {
			b.turns[name] = b.turns[name][1:]
		}
	}
	b.seen.Store(0)
	ask(ada, escalation.TalkFailed, 0)
	require.Equal(t, int64(2), b.seen.Load(), "only the latest repetition is read")
	ask(ada, escalation.TalkRunning, 0)
	_, before := id(ada, question)
	require.Equal(t, len(given), before.Turn, "it runs")

	ask(named, escalation.TalkAnswered, time.Second)
	_, before = id(named, question)
	require.Equal(t, len(given), before.Turn, "its answer may not have arrived")
	s.told.add(named.name(question), len(given), now)
	ask(named, escalation.TalkAnswered, time.Second)
	s.told.add(named.name(question), len(given), now)
	retrying := named
	retrying.retries = true
	_, before = id(retrying, question)
	require.Equal(t, len(given), before.Turn, "the client says that it repeats its request")

	// A month later the turn of the question is gone, and the conversation has gone on.
	name := named.name(question)
	b.turns[name] = []escalation.TalkTurn{{Turn: len(given) + 1, State: escalation.TalkAnswered, TalkMessage: escalation.TalkMessage{Key: "other"}}}
	ask(named, escalation.TalkAnswered, time.Second)
}

// TestClientsIDs sends messages with the client's IDs: the same request again, and another one with the same ID.
func TestClientsIDs(t *testing.T) {
	t.Parallel()
	b := newBook()
	s := serve(t, b, Options{})
	for range 2 {
		require.Equal(t, "re: hello", s.chat(t, []string{"hello"}, repeatHeader, "r-1"))
	}
	require.Len(t, b.all(), 1)
	other := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", chatBody(t, false, "good bye"), repeatHeader, "r-1")
	require.Equal(t, http.StatusConflict, other.StatusCode)
	require.Contains(t, problemIn(t, other.body).Message, "Idempotency-Key was used before, for another message")
	require.Len(t, b.all(), 1)
	bob := s.token(t, "bob", access.Talk)
	got := s.ask(t, bob, http.MethodPost, "/v1/chat/completions", chatBody(t, false, "good bye"), repeatHeader, "r-1")
	require.Equal(t, "re: good bye", contentOf(t, got.body), "another person has IDs of their own")

	for _, message := range []string{"m-1", "m-1", "m-2"} { // Open WebUI generates an answer again under a new ID
		s.chat(t, []string{"and nas?"}, chatHeader, "c-1", messageHeader, message)
	}
	require.Len(t, b.all(), 4)
}

// TestSecondYes says yes twice, to two questions, in a conversation that the client names.
func TestSecondYes(t *testing.T) {
	t.Parallel()
	b := newBook()
	s := serve(t, b, Options{})
	for range 3 {
		require.Equal(t, "re: yes", s.chat(t, []string{"yes"}, conversationHeader, "ops"))
	}
	require.Len(t, b.only(t), 3)
}

// TestRepeatedAfterAChange repeats a request whose text would be composed differently by now, because an earlier turn
// was answered since.
func TestRepeatedAfterAChange(t *testing.T) {
	t.Parallel()
	b := newBook()
	s := serve(t, b, Options{})
	ask := func() string {
		return s.chat(t, []string{"how is nas?", "re: how is nas?", "and jellyfin?"}, chatHeader, "c-1", messageHeader, "m-2")
	}
	first := ask()
	s.chat(t, []string{"how is nas?"}, chatHeader, "c-1", messageHeader, "m-1")
	require.Equal(t, first, ask())
	require.Len(t, b.only(t), 2)
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
