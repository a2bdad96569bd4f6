package completions

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

// bodyWith returns the request of a chat with further fields.
func bodyWith(t *testing.T, messages []map[string]any, fields map[string]any) string {
	t.Helper()
	body := map[string]any{"model": "claudeops", "messages": messages}
	maps.Copy(body, fields)
	encoded, err := json.Marshal(body)
	require.NoError(t, err)
	return string(encoded)
}

func said(role string, content any) map[string]any {
	return map[string]any{"role": role, "content": content}
}

// TestBackgroundRequests sends what clients ask for by themselves, in words of their own, and what persons ask for.
func TestBackgroundRequests(t *testing.T) {
	t.Parallel()
	const question, reply = "wie geht es jellyfin?", "Jellyfin läuft seit Montag ohne Fehler und hat 40 % der Platte frei."
	ask := said(roleUser, question)
	quoting := said(roleUser, "Fasse zusammen, in 5 Wörtern:\n\nMensch: "+question+"\n\nKI: "+reply[:65]+"…")
	for name, test := range map[string]struct {
		messages []map[string]any
		fields   map[string]any
		header   []string
		pays     bool
	}{
		"few tokens":                 {[]map[string]any{said(roleSystem, "Name this chat."), ask}, map[string]any{"max_tokens": 16}, nil, false},
		"few tokens, streamed":       {[]map[string]any{ask}, map[string]any{"max_completion_tokens": 100, "stream": true}, nil, false},
		"few tokens, with a history": {[]map[string]any{ask, said(roleAssistant, reply), said(roleUser, "Titel?")}, map[string]any{"max_tokens": 30}, nil, false},
		"the tokens of a title":      {[]map[string]any{said(roleUser, "Erfinde Schlagworte: "+question)}, map[string]any{"max_completion_tokens": 1_000}, []string{chatHeader, "c-9"}, false},
		"a quoted chat":              {[]map[string]any{quoting}, map[string]any{"stream": true}, nil, false},
		"a quoted chat, in a system prompt": {
			[]map[string]any{said(roleSystem, "Chat:\n"+question+"\n"+reply), said(roleUser, "Titel?")}, nil, []string{chatHeader, "c-1"}, false,
		},

		"a question":                           {[]map[string]any{ask}, nil, nil, true},
		"a question with many tokens":          {[]map[string]any{ask}, map[string]any{"max_tokens": 4_096}, nil, true},
		"a screen with 1,000 tokens":           {[]map[string]any{ask}, map[string]any{"max_tokens": 1_000, "stream": true}, nil, true},
		"no limit":                             {[]map[string]any{ask}, map[string]any{"max_tokens": 0}, nil, true},
		"an odd limit":                         {[]map[string]any{ask}, map[string]any{"max_tokens": "16", "response_format": nil, "tool_choice": "auto"}, nil, true},
		"a conversation that continues":        {[]map[string]any{ask, said(roleAssistant, reply), said(roleUser, "und nas?")}, map[string]any{"max_tokens": 150}, nil, true},
		"a named conversation":                 {[]map[string]any{ask}, map[string]any{"max_tokens": 16}, []string{conversationHeader, "ops"}, true},
		"a question about an answer":           {[]map[string]any{said(roleUser, "Was heißt das: "+reply)}, nil, nil, true},
		"the same question in another chat":    {[]map[string]any{said(roleUser, question+" Und nas?")}, nil, nil, true},
		"a quoted chat in a conversation":      {[]map[string]any{ask, said(roleAssistant, reply), quoting}, nil, nil, true},
		"a quoted chat that somebody else had": {[]map[string]any{quoting}, nil, []string{userHeader, "u-2"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBook()
			b.ends[question] = escalation.TalkTurn{State: escalation.TalkAnswered, TalkReply: escalation.TalkReply{Reply: reply}}
			s := serve(t, b, Options{})
			require.Equal(t, reply, s.chat(t, []string{question}, chatHeader, "c-1"))
			got := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", bodyWith(t, test.messages, test.fields), test.header...)
			require.Equal(t, http.StatusOK, got.StatusCode, got.body)
			if test.pays {
				require.Len(t, b.all(), 2, got.body)
				return
			}
			require.Len(t, b.all(), 1, got.body)
			require.Contains(t, got.body, "No session was started", "a person is told so")
			require.Contains(t, got.body, conversationHeader, "and what to do")
			require.Equal(t, strings.Contains(name, "quoted") || strings.Contains(name, "history"), strings.Contains(got.body, `"content":"`+question+`\n\n(No session`), "a title")
		})
	}
}

// TestTasksAfterAChat sends what a client asks by itself at the end of a whole chat, as NextChat does: for a title,
// without a stream, and for a summary, as an instruction. Then it sends what a person asks.
func TestTasksAfterAChat(t *testing.T) {
	t.Parallel()
	const question, title = "wie geht es jellyfin?", "Nenne vier bis fünf Wörter als Titel."
	reply := "re: " + question
	chat := []map[string]any{said(roleUser, question), said(roleAssistant, reply)}
	for name, test := range map[string]struct {
		streamed bool // whether the chat is
		last     map[string]any
		fields   map[string]any
		header   []string
		pays     bool
	}{
		"a title":                           {true, said(roleUser, title), nil, nil, false},
		"a summary":                         {true, said(roleSystem, "Fasse zusammen."), map[string]any{"stream": true}, nil, false},
		"a summary of a chat at once":       {false, said(roleDeveloper, "Fasse zusammen."), nil, nil, false},
		"a question":                        {true, said(roleUser, title), map[string]any{"stream": true}, nil, true},
		"a question of a program":           {false, said(roleUser, title), nil, nil, true},
		"a question of a program, named":    {true, said(roleUser, title), nil, []string{conversationHeader, "ops"}, true},
		"a question that somebody else has": {true, said(roleUser, title), nil, []string{userHeader, "u-2"}, true},
		"to continue":                       {true, said(roleAssistant, "x"), map[string]any{"stream": true}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBook()
			s := serve(t, b, Options{})
			s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", bodyWith(t, chat[:1], map[string]any{"stream": test.streamed}))
			body := bodyWith(t, append(slices.Clip(chat), test.last), test.fields)
			got := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", body, test.header...)
			require.Equal(t, http.StatusOK, got.StatusCode, got.body)
			if test.pays {
				require.Len(t, b.all(), 2, got.body)
				return
			}
			require.Len(t, b.all(), 1, got.body)
			require.Contains(t, got.body, `"content":"`+question+`\n\n(No session`, "a title, and what to do")
		})
	}
	b := newBook()
	s := serve(t, b, Options{})
	s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", bodyWith(t, append(slices.Clip(chat), said(roleUser, "und nas?"), said(roleSystem, "Sei kurz.")), nil))
	require.Len(t, b.all(), 1, "an instruction after a question")
}

// TestUnfulfillable checks that a request which demands what no answer has is refused.
func TestUnfulfillable(t *testing.T) {
	t.Parallel()
	b := newBook()
	s := serve(t, b, Options{})
	for field, value := range map[string]any{
		"response_format": map[string]any{"type": "json_schema", "json_schema": map[string]any{}},
		"tool_choice":     map[string]any{"type": "function", "function": map[string]any{"name": "title"}},
	} {
		body := bodyWith(t, []map[string]any{said(roleUser, "hello")}, map[string]any{field: value})
		got := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", body)
		require.Equal(t, http.StatusBadRequest, got.StatusCode)
		require.Equal(t, field, *problemIn(t, got.body).Param)
	}
	require.Empty(t, b.all())
}

// TestContinue asks to continue an answer, twice, and then something else. The client shows all three parts as one
// message.
func TestContinue(t *testing.T) {
	t.Parallel()
	b := newBook()
	s := serve(t, b, Options{})
	const asked = "how is nas?"
	shown := s.chat(t, []string{asked})
	for range 2 {
		body := chatBody(t, true, asked, shown)
		for _, chunk := range chunksOf(t, s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", body).body) {
			if len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != nil {
				shown += *chunk.Choices[0].Delta.Content
			}
		}
	}
	require.Equal(t, "re: how is nas?\n\nre: Continue your last answer.\n\nre: Continue your last answer.", shown)
	s.chat(t, []string{asked, shown, "and jellyfin?"})
	s.chat(t, []string{asked, shown + " edited", "and web?"})
	turns := b.only(t)
	require.Len(t, turns, 5)
	for i, after := range []int{0, 1, 2, 3, 3} {
		require.Equal(t, new(after), turns[i].After, "turn %d", i+1)
	}
	require.Equal(t, "and jellyfin?", turns[3].Text)
	require.Contains(t, turns[4].Text, "edited")
	alone := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", bodyWith(t, []map[string]any{said(roleAssistant, "Hello!")}, nil))
	require.Equal(t, http.StatusBadRequest, alone.StatusCode)
}

// TestPhotos sends a chat with photos and a file. Their data counts for nothing, and the texts around them stay.
func TestPhotos(t *testing.T) {
	t.Parallel()
	b := newBook()
	s := serve(t, b, Options{})
	photo := "data:image/jpeg;base64," + strings.Repeat("iVBORw0KGgo+/Ab", 200_000) + "=="
	parts := []map[string]any{
		{"type": "text", "text": "what is this?"},
		{"type": "image_url", "image_url": map[string]any{"url": photo}},
		{"type": "file", "file": map[string]any{"file_data": strings.Repeat("x", 3<<20)}},
	}
	chat := []map[string]any{said(roleUser, parts)}
	got := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", bodyWith(t, chat, nil))
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	answer := contentOf(t, got.body)
	chat = append(chat, said(roleAssistant, answer), said(roleUser, "and ![this]("+photo+")? \"\\ yes"))
	got = s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", bodyWith(t, chat, nil))
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	turns := b.only(t)
	require.Equal(t, "what is this?\n[image_url is left out: only text can be read]\n[file is left out: only text can be read]", turns[0].Text)
	require.Equal(t, new(1), turns[1].After)
	require.Equal(t, "and ![this]("+photo[:len("data:image/jpeg;base64,")+maxEncoded]+")? \"\\ yes", turns[1].Text)

	for name, body := range map[string]string{
		"text":  bodyWith(t, []map[string]any{said(roleUser, strings.Repeat("long ", 200_000))}, nil),
		"texts": bodyWith(t, slicesRepeat(said(roleUser, strings.Repeat("long ", 20_000)), 60), nil),
	} {
		got := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", body)
		require.Equal(t, map[string]int{"text": http.StatusBadRequest, "texts": http.StatusRequestEntityTooLarge}[name], got.StatusCode, name)
	}
}

func slicesRepeat(message map[string]any, count int) (all []map[string]any) {
	for range count {
		all = append(all, message)
	}
	return all
}

// lighten returns what the reader keeps of JSON, read in pieces of one byte.
func lighten(t *testing.T, text string) string {
	t.Helper()
	kept, err := io.ReadAll(newLightReader(iotest.OneByteReader(strings.NewReader(text))))
	require.NoError(t, err)
	return string(kept)
}

// TestLightReader checks where strings are cut.
func TestLightReader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("A", 3_000)
	encoded := ";base64," + strings.Repeat("A", maxEncoded)
	for given, want := range map[string]string{
		`{"url":"` + long + `","text":"` + long + `"}`:        `{"url":"` + long[:maxOther] + `","text":"` + long + `"}`,
		`{"TEXT":"` + long + `","x":["a","` + long + `"]}`:    `{"TEXT":"` + long + `","x":["a","` + long + `"]}`,
		`{"cont\u0065nt":"` + long + `"}`:                     `{"cont\u0065nt":"` + long + `"}`,
		`{"url":{"text":"` + long + `"},"u":"` + long + `"}`:  `{"url":{"text":"` + long + `"},"u":"` + long[:maxOther] + `"}`,
		`["a;base64,` + long + `\nWhat \u0041 is this?"]`:     `["a` + encoded + `\nWhat \u0041 is this?"]`,
		`["` + encoded[:len(encoded)-1] + `\/BB\/ ok"]`:       `["` + encoded[:len(encoded)-1] + `\/ ok"]`,
		`["` + encoded + `","` + encoded + `B"]`:              `["` + encoded + `","` + encoded + `"]`,
		`{"u":"` + strings.Repeat(`\"`, 2_000) + `","b":"c"}`: `{"u":"` + strings.Repeat(`\"`, maxOther/2) + `","b":"c"}`,
		`{"u":"` + strings.Repeat("é", 2_000) + `"}`:          `{"u":"` + strings.Repeat("é", maxOther/2) + `"}`,
		`{"u":"a` + strings.Repeat(`\u00e9`, 2_000) + `"}`:    `{"u":"a` + strings.Repeat(`\u00e9`, 171) + `"}`,
		`no JSON "`: `no JSON "`,
	} {
		require.Equal(t, want, lighten(t, given))
	}
	huge := `{"text":"` + strings.Repeat(`\\`, maxString) + `"}`
	require.Equal(t, `{"text":"`+strings.Repeat(`\\`, maxString/2)+`"}`, lighten(t, huge))
}

// FuzzLightReader checks that JSON stays JSON with the same structure, that short strings stay as they are, and that
// the rest is bounded.
func FuzzLightReader(f *testing.F) {
	f.Add(`{"messages":[{"role":"user","content":"a \"b\" \\ \/ \u00e9 é"}],"x":[1,true,null]}`, "x", 2_000)
	f.Add(`["%"]`, `\/`, 1)
	f.Add(`{"text":"data:;base64,%"}`, `\u0041A+/`, 900)
	f.Fuzz(func(t *testing.T, text, unit string, times int) {
		if times < 0 || times > 5_000 || len(unit) > 100 {
			return
		}
		if before, after, found := strings.Cut(text, "%"); found {
			text = before + strings.Repeat(unit, times) + after
		}
		kept, err := io.ReadAll(newLightReader(strings.NewReader(text)))
		require.NoError(t, err)
		require.LessOrEqual(t, len(kept), len(text))
		if !json.Valid([]byte(text)) {
			return
		}
		require.True(t, json.Valid(kept), "%s -> %s", text, kept)
		var was, is any
		require.NoError(t, json.Unmarshal([]byte(text), &was))
		require.NoError(t, json.Unmarshal(kept, &is))
		if len(text) <= maxOther {
			require.Equal(t, was, is)
		}
		var request request
		_, _ = request, json.Unmarshal(kept, &request) // it must not panic
		_, _ = dialogueOf(request.Messages)
	})
}
