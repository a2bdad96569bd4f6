package completions

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	_ "github.com/claudeops/claudeops/internal/cell/shell" // the test binary is also the shell of its agents, as claudeops is
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
)

// TestMain runs the tests. The test binary is also the stand-in for claude.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(m.Run())
}

// testTimeout limits a wait for a state. A busy machine needs a small part of it.
const testTimeout = 3 * time.Minute

// site is a web server with this package's part.
type site struct {
	*httptest.Server

	tokens *access.TokenFile
	ada    string // her token, with the role talk
}

// serve starts a web server.
func serve(t *testing.T, talks Talks, options Options) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{tokens: access.OpenTokens(filepath.Join(dir, "tokens"))}
	s.ada = s.token(t, "ada", access.Talk)
	who, err := access.New(access.Options{Tokens: s.tokens, KeyFile: filepath.Join(dir, "key")})
	require.NoError(t, err)
	server, err := web.New(web.Options{Access: who, Parts: []web.Part{New(talks, options)}, Hosts: []string{"127.0.0.1"}})
	require.NoError(t, err)
	s.Server = httptest.NewServer(server)
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
	return s
}

func (s *site) token(t *testing.T, name string, roles ...access.Role) string {
	t.Helper()
	secret, err := s.tokens.Create(access.Token{Name: name, Roles: roles})
	require.NoError(t, err)
	return secret
}

// answer is an answer of the server.
type answer struct {
	*http.Response

	body string
}

// ask sends a request. The header is a list of names and values.
func (s *site) ask(t *testing.T, token, method, path, body string, header ...string) answer {
	t.Helper()
	response := s.open(t.Context(), t, token, method, path, body, header...)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return answer{response, string(text)}
}

func (s *site) open(ctx context.Context, t *testing.T, token, method, path, body string, header ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for pair := range slices.Chunk(header, 2) {
		request.Header.Set(pair[0], pair[1])
	}
	response, err := s.Client().Do(request)
	require.NoError(t, err)
	return response
}

// chat sends ada's messages, which alternate between her and the assistant, and returns the answer.
func (s *site) chat(t *testing.T, messages []string, header ...string) string {
	t.Helper()
	got := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", chatBody(t, false, messages...), header...)
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	return contentOf(t, got.body)
}

func chatBody(t *testing.T, streams bool, messages ...string) string {
	t.Helper()
	var sent []map[string]any
	for i, text := range messages {
		sent = append(sent, map[string]any{"role": []string{roleUser, roleAssistant}[i%2], "content": text})
	}
	body, err := json.Marshal(map[string]any{"model": "claudeops", "messages": sent, "stream": streams, "temperature": 0.5})
	require.NoError(t, err)
	return string(body)
}

func contentOf(t *testing.T, body string) string {
	t.Helper()
	var got completion
	require.NoError(t, json.Unmarshal([]byte(body), &got), body)
	require.Len(t, got.Choices, 1)
	require.Equal(t, "stop", *got.Choices[0].FinishReason)
	return *got.Choices[0].Message.Content
}

// problemIn returns the error in an answer.
func problemIn(t *testing.T, body string) access.CompletionError {
	t.Helper()
	var got struct{ Error access.CompletionError }
	require.NoError(t, json.Unmarshal([]byte(body), &got), body)
	require.NotEmpty(t, got.Error.Message)
	return got.Error
}

// chunksOf returns the chunks of a stream, which must end as streams do.
func chunksOf(t *testing.T, body string) (chunks []completion) {
	t.Helper()
	var ended bool
	lines := bufio.NewScanner(bytes.NewBufferString(body))
	for lines.Scan() {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue
		}
		require.False(t, ended, "nothing follows %s", done)
		if ended = data == "[DONE]"; ended {
			continue
		}
		var chunk completion
		require.NoError(t, json.Unmarshal([]byte(data), &chunk), data)
		chunks = append(chunks, chunk)
	}
	require.True(t, ended, body)
	return chunks
}

// book holds conversations in memory. The text of a message decides what becomes of it.
type book struct {
	mutex sync.Mutex
	turns map[string][]escalation.TalkTurn // by the name of the conversation
	// events are what a turn reports before it ends, and ends has its end, by the message.
	events map[string][]operations.TalkEvent
	ends   map[string]escalation.TalkTurn
	// release ends the turns of the message "slow".
	release chan struct{}
	busy    error
	// lasting names the messages whose failures a repetition would meet again.
	lasting map[string]bool
	// seen counts the turns that were read for their key.
	seen atomic.Int64
}

var _ Talks = (*book)(nil)

func newBook() *book {
	return &book{
		turns: map[string][]escalation.TalkTurn{}, events: map[string][]operations.TalkEvent{}, ends: map[string]escalation.TalkTurn{},
		release: make(chan struct{}), lasting: map[string]bool{},
	}
}

// Send implements Talks.
func (b *book) Send(_ context.Context, name, about string, message escalation.TalkMessage) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if err := errors.Join(b.busy, escalation.CheckConversationName(name), message.Validate()); err != nil || about != "" {
		return 0, err
	}
	for i := range b.turns[name] {
		if known := b.turns[name][i]; known.MessageID == message.MessageID {
			if known.Digest() != message.Digest() {
				return 0, operations.WithKind(operations.KindConflict, operations.ErrOtherMessage)
			}
			return i + 1, nil
		}
	}
	number := len(b.turns[name]) + 1
	b.turns[name] = append(b.turns[name], escalation.TalkTurn{
		ConversationID: escalation.ConversationPrefix + name, Turn: number, TalkMessage: message, State: escalation.TalkRunning,
	})
	return number, nil
}

// Follow implements Talks.
func (b *book) Follow(
	ctx context.Context, name string, turn int, see func(operations.TalkEvent) error,
) (escalation.TalkTurn, error) {
	b.mutex.Lock()
	text := b.turns[name][turn-1].Text
	events := b.events[text]
	b.mutex.Unlock()
	for _, event := range events {
		if err := see(event); err != nil {
			return escalation.TalkTurn{}, err
		}
	}
	if text == "slow" {
		select {
		case <-b.release:
		case <-ctx.Done():
			return escalation.TalkTurn{}, ctx.Err()
		}
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	ended := &b.turns[name][turn-1]
	if end, found := b.ends[text]; found {
		ended.State, ended.TalkReply, ended.Failure, ended.Note = end.State, end.TalkReply, end.Failure, end.Note
	} else {
		ended.State, ended.Reply = escalation.TalkAnswered, "re: "+text
	}
	ended.EndedAt = time.Now()
	return *ended, nil
}

// TurnsOf implements Talks.
func (b *book) TurnsOf(_ context.Context, name, key string, see func(escalation.TalkTurn) bool) error {
	b.mutex.Lock()
	turns := slices.Clone(b.turns[name])
	b.mutex.Unlock()
	for _, turn := range slices.Backward(turns) {
		if turn.Key != key {
			continue
		}
		b.seen.Add(1)
		if !see(turn) {
			break
		}
	}
	return nil
}

// History implements Talks.
func (b *book) History(_ context.Context, name string, limit int) ([]escalation.TalkTurn, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	turns := slices.Clone(b.turns[name])
	return turns[max(0, len(turns)-limit):], nil
}

// MessageTurn implements Talks.
func (b *book) MessageTurn(_ context.Context, messageID string) (escalation.TalkTurn, error) {
	for _, turn := range b.all() {
		if turn.MessageID == messageID {
			return turn, nil
		}
	}
	return escalation.TalkTurn{}, operations.WithKind(operations.KindNotFound, errors.New("no such message"))
}

// Tokens implements Talks.
func (b *book) Tokens(context.Context, escalation.TalkTurn) (escalation.TokenUsage, error) {
	return escalation.TokenUsage{Input: 1, CacheRead: 2, CacheCreation: 3, Output: 4}, nil
}

// FailsAgain implements Talks.
func (b *book) FailsAgain(_ context.Context, turn escalation.TalkTurn) (bool, error) {
	return b.lasting[turn.Text], nil
}

// all returns all turns.
func (b *book) all() (all []escalation.TalkTurn) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, turns := range b.turns {
		all = append(all, turns...)
	}
	return all
}

// only returns the turns of the only conversation.
func (b *book) only(t *testing.T) []escalation.TalkTurn {
	t.Helper()
	all := b.all()
	require.Len(t, b.turns, 1)
	return all
}
