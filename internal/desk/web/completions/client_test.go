package completions

import (
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/internal/systemtest/webtest"
)

// startTalks starts an installation, and returns its operations and a web server on them.
func startTalks(t *testing.T) (*operations.Operations, *site) {
	t.Helper()
	says := func(prompt, reply string) claudesim.Turn {
		return claudesim.On(claudesim.Match{Prompt: prompt}, claudesim.Conclude(escalation.TalkReply{Reply: reply}))
	}
	environ := webtest.Install(t, claudesim.Play(
		says("since when", "Since Monday."), says("and nas", "Nas sleeps."), says("jellyfin", "Jellyfin is well."),
	))
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	o := operations.New(operations.Options{Environ: environ, Logger: logger, Clock: time.Now, Patience: testTimeout, Masked: func() {}})
	t.Cleanup(func() { require.NoError(t, o.Close()) })
	return o, serve(t, o.Conversations, Options{})
}

// TestOfficialClients lets the official packages of OpenAI for Go and for Node talk at the same time, each as another
// person. `make openai-clients` installs them.
func TestOfficialClients(t *testing.T) {
	t.Parallel()
	root := simtest.ModuleRoot(t)
	clients := map[string][]string{}
	for name, command := range map[string][]string{
		"ada": {filepath.Join(root, "bin", "clients", "openai")},
		"bob": {"node", filepath.Join(root, "tools", "openai", "client.mjs")},
	} {
		needed := command[0]
		if needed == "node" {
			needed = filepath.Join(root, "tools", "openai", "node_modules", "openai")
		}
		if _, err := os.Stat(needed); err != nil {
			require.NotEqual(t, "true", os.Getenv("CI"), "a client is not installed: run make openai-clients")
			t.Logf("%s is not installed: run make openai-clients", needed)
			continue
		}
		clients[name] = command
	}
	if len(clients) == 0 {
		t.Skip("no client is installed: run make openai-clients")
	}
	o, s := startTalks(t)
	tokens := map[string]string{"ada": s.ada, "bob": s.token(t, "bob", access.Talk)}
	said := map[string]string{}
	var mutex sync.Mutex
	var talking sync.WaitGroup
	for name, command := range clients {
		talking.Go(func() {
			client := exec.CommandContext(t.Context(), command[0], append(command[1:], s.URL, tokens[name])...)
			text, err := client.CombinedOutput()
			mutex.Lock()
			defer mutex.Unlock()
			if said[name] = string(text); err != nil {
				said[name] += err.Error()
			}
		})
	}
	talking.Wait()
	for name := range clients {
		require.Equal(t, "model claudeops\nwhole Jellyfin is well. stop true\nstream Since Monday. stop true\nrefused 401 invalid_api_key\n",
			said[name], name)
		from, d := sender{person: name}, dialogue{text: "how is jellyfin?"}
		turns, err := o.Conversations.History(t.Context(), from.name(d), 10)
		require.NoError(t, err)
		require.Len(t, turns, 2, name)
		requireFork(t, o, turns, 1, 0)
		require.Equal(t, "be brief\n\nhow is jellyfin?", turns[0].Text)
	}
}

// TestOpenWebUIOnTemporal plays the recorded chat of Open WebUI on an installation: an edited message forks the session
// of the answer that it follows.
func TestOpenWebUIOnTemporal(t *testing.T) {
	t.Parallel()
	o, s := startTalks(t)
	for _, request := range []struct{ name, want string }{
		{"first", "Jellyfin is well."}, {"second", "Since Monday."}, {"edited", "Nas sleeps."}, {"edited", "Nas sleeps."},
	} {
		got := s.ask(t, s.ada, http.MethodPost, "/v1/chat/completions", recorded(t, request.name, "ANSWER", "Jellyfin is well."),
			chatHeader, "c-1")
		require.Equal(t, http.StatusOK, got.StatusCode, got.body)
		chunks := chunksOf(t, got.body)
		require.Contains(t, got.body, request.want)
		require.Positive(t, chunks[len(chunks)-1].Usage.CompletionTokens)
	}
	turns, err := o.Conversations.History(t.Context(), sender{person: "ada", chat: "c-1"}.name(dialogue{}), 10)
	require.NoError(t, err)
	require.Len(t, turns, 3)
	requireFork(t, o, turns, 1, 0)
	requireFork(t, o, turns, 2, 0)
}

// requireFork checks that the session of a turn has continued that of another one.
func requireFork(t *testing.T, o *operations.Operations, turns []escalation.TalkTurn, of, from int) {
	t.Helper()
	records, _, err := o.OpenRecords(t.Context())
	require.NoError(t, err)
	session, err := records.BySessionID(t.Context(), turns[of].SessionID)
	require.NoError(t, err)
	parent, err := records.BySessionID(t.Context(), turns[from].SessionID)
	require.NoError(t, err)
	require.Equal(t, parent.ID, session.ParentID)
	require.Equal(t, escalation.ContinuityResume, session.Continuity)
}
