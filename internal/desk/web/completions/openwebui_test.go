package completions

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/web/access"
)

// recorded returns a request of Open WebUI from testdata, with replacements.
func recorded(t *testing.T, name string, replace ...string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", "openwebui", name+".json"))
	require.NoError(t, err)
	return strings.NewReplacer(replace...).Replace(string(body))
}

// TestOpenWebUITasks checks that what Open WebUI asks by itself needs no session.
func TestOpenWebUITasks(t *testing.T) {
	t.Parallel()
	b := newBook()
	s := serve(t, b, Options{})
	for name, want := range map[string]string{
		"title":      `{"title":"how is jellyfin?"}`,
		"tags":       `{"tags":["General"]}`,
		"follow_ups": `{"follow_ups":[]}`,
		"queries":    `{"queries":[]}`,
		"text":       `{"text":""}`,
	} {
		got := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", recorded(t, name), chatHeader, "c-1")
		require.Equal(t, http.StatusOK, got.StatusCode, got.body)
		require.JSONEq(t, want, contentOf(t, got.body), name)
	}
	require.Empty(t, b.all())
	require.Equal(t, "re: ### Task: restart nas", s.chat(t, []string{"### Task: restart nas"}), "a person can begin so, too")
}

// TestOpenWebUIChat plays a chat: messages with their history, an answer that is generated again, and a message that is
// edited.
func TestOpenWebUIChat(t *testing.T) {
	t.Parallel()
	b := newBook()
	s := serve(t, b, Options{})
	send := func(name, messageID string, replace ...string) {
		t.Helper()
		got := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", recorded(t, name, replace...),
			chatHeader, "c-1", messageHeader, messageID, userHeader, "u-1")
		require.Equal(t, http.StatusOK, got.StatusCode, got.body)
		require.NotEmpty(t, chunksOf(t, got.body))
	}
	send("first", "a-1")
	send("first", "a-1") // the connection broke
	send("second", "a-2", "ANSWER", "re: be brief\\n\\nhow is jellyfin?")
	send("second", "a-3", "ANSWER", "re: be brief\\n\\nhow is jellyfin?") // generated again
	send("edited", "a-4", "ANSWER", "re: be brief\\n\\nhow is jellyfin?")
	send("first", "a-5")
	send("second", "a-6", "ANSWER", "what another model said")

	turns := b.only(t)
	require.Len(t, turns, 6)
	for i, want := range []struct {
		after int
		text  string
	}{
		{0, "be brief\n\nhow is jellyfin?"},
		{1, "and since when?"},
		{1, "and since when?"},
		{1, "and nas?"},
		{0, "be brief\n\nhow is jellyfin?"},
		{5, "Said before:\nassistant: what another model said\n\nThe message:\nand since when?"},
	} {
		require.Equal(t, new(want.after), turns[i].After, "turn %d", i+1)
		require.Equal(t, want.text, turns[i].Text)
		require.Equal(t, "ada", turns[i].Actor)
	}
}

// TestOtherPeople checks that nobody continues the conversation of somebody else.
func TestOtherPeople(t *testing.T) {
	t.Parallel()
	b := newBook()
	s := serve(t, b, Options{})
	bob := s.token(t, "bob", access.Talk)
	for _, header := range [][]string{{chatHeader, "c-1"}, {conversationHeader, "ops"}, nil, {userHeader, "u-2"}} {
		s.chat(t, []string{"hello"}, header...)
		got := s.ask(t, bob, http.MethodPost, "/v1/chat/completions", chatBody(t, false, "hello", "re: hello", "what did I say?"), header...)
		require.Equal(t, http.StatusOK, got.StatusCode)
	}
	require.Len(t, b.turns, 8)
	for _, turn := range b.all() {
		require.Equal(t, 1, turn.Turn)
		if turn.Actor == "bob" {
			require.Contains(t, turn.Text, "Said before:", "it is his history, and nobody's conversation")
		}
	}
}

// TestOwnNames checks conversations that a client names itself: without a history, messages follow the latest answer.
func TestOwnNames(t *testing.T) {
	t.Parallel()
	b := newBook()
	s := serve(t, b, Options{})
	s.chat(t, []string{"one"}, conversationHeader, "ops")
	s.chat(t, []string{"two"}, conversationHeader, "ops")
	s.chat(t, []string{"two"}, conversationHeader, "ops", repeatHeader, "r-1")
	s.chat(t, []string{"two"}, conversationHeader, "ops", repeatHeader, "r-1")
	turns := b.only(t)
	require.Len(t, turns, 3)
	for i := range turns {
		require.Nil(t, turns[i].After)
	}
}

// TestFingerprint checks that the history alone leads to the conversation, also after white space has changed.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	b := newBook()
	s := serve(t, b, Options{})
	first := s.chat(t, []string{"hello"})
	s.chat(t, []string{"hello", first + "\n", "and now?"})
	s.chat(t, []string{"hello ", " " + first, "and now?", "re: and now?", "and then?"})
	s.chat(t, []string{"hello", "edited", "and now?"})
	turns := b.only(t)
	require.Len(t, turns, 4)
	for i, after := range []int{0, 1, 2, 1} {
		require.Equal(t, new(after), turns[i].After, "turn %d", i+1)
	}
	require.Equal(t, "Said before:\nassistant: edited\n\nThe message:\nand now?", turns[3].Text)

	s.chat(t, []string{"from elsewhere", "yes", "go on"})
	require.Len(t, b.turns, 2)
}
