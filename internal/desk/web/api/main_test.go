package api

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	_ "github.com/claudeops/claudeops/internal/cell/shell" // the test binary is also the shell of its agents, as claudeops is
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/desk/web/stream"
	"github.com/claudeops/claudeops/internal/escalation"
)

// TestMain runs the tests. The test binary is also the stand-in for claude.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(m.Run())
}

// testTimeout limits a wait for a state. A busy machine needs a small part of it.
const testTimeout = 3 * time.Minute

// testLook is the time between two looks for a state.
const testLook = 50 * time.Millisecond

// ownersToken is the token of ada, who may do everything.
const ownersToken = "owners-token-for-tests"

// asking is a scenario in which each agent asks for a person, until it is told to remove the lock.
func asking() claudesim.Scenario {
	return claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "remove the lock"}, claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictResolved, Summary: "the lock is gone",
		})),
		claudesim.Always(claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictNeedsHuman, Summary: "may the lock be removed?"})))
}

// site is a web server with the API on it.
type site struct {
	*httptest.Server

	operations *operations.Operations
	tokens     *access.TokenFile
	viewer     string // a token of bob, who may only look
}

// serve starts a web server beside what environ describes.
func serve(t testing.TB, environ []string) *site {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	o := operations.New(operations.Options{Environ: environ, Logger: logger, Clock: time.Now, Patience: testTimeout, Masked: func() {}})
	t.Cleanup(func() { require.NoError(t, o.Close()) })
	hub := stream.NewHub(func() stream.Source { return o.Feed.Watch() }, logger)
	running, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { defer close(done); hub.Run(running) }()
	t.Cleanup(func() { stop(); <-done })
	tokens := access.OpenTokens(filepath.Join(t.TempDir(), "tokens"))
	viewer, err := tokens.Create(access.Token{Name: "bob", Roles: []access.Role{access.View}})
	require.NoError(t, err)
	who, err := access.New(access.Options{
		Tokens: tokens, Owner: access.Owner{Name: "ada", Secret: ownersToken}, KeyFile: filepath.Join(t.TempDir(), "key"), Logger: logger,
	})
	require.NoError(t, err)
	server, err := web.New(web.Options{
		Access: who, Parts: []web.Part{New(o, hub, "test")}, Hosts: []string{"127.0.0.1"}, MaxBody: 1 << 20, Logger: logger,
	})
	require.NoError(t, err)
	s := &site{Server: httptest.NewServer(server), operations: o, tokens: tokens, viewer: viewer}
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
	return s
}

// answer is an answer of the API.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// into decodes a body.
func (a answer) into(t testing.TB, value any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(a.body, value), string(a.body))
}

// ask sends a request as ada. A body that is not text is sent as JSON.
func (s *site) ask(t testing.TB, method, path string, body any, header ...string) answer {
	t.Helper()
	return s.askAs(t, ownersToken, method, path, body, header...)
}

func (s *site) askAs(t testing.TB, token, method, path string, body any, header ...string) answer {
	t.Helper()
	var content io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(body)
	default:
		data, err := json.Marshal(body)
		require.NoError(t, err)
		content = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, content)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := s.Client().Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return answer{response.StatusCode, response.Header, data}
}
