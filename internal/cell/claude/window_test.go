package claude_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// dearAbove is the length of a prompt, in tokens, above which claude-haiku-5-5 costs five times as much.
const dearAbove = 100_000

// TestALookStaysBelowTheDearLength runs a real CLI whose agent reads far more than the length above which its model
// costs more. No call may pass that length, also not the one that summarizes the conversation.
func TestALookStaysBelowTheDearLength(t *testing.T) {
	t.Parallel()
	const output, turns = 29_000, 20 // characters
	read := claudesim.Bash(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", output))
	api := simtest.StartAPI(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "Your task is to create a detailed summary"}, claudesim.Say("<summary>looked at much</summary>")),
		claudesim.Always(read, read, read, read, read, read, read, read, read, read, read, read, read, read, read, read, read, read, read, read),
	))
	counting := countTokens(t, api.URL())
	cli, err := claude.Locate(t.Context(), claude.Options{
		Path: simtest.RealCLI(t, claudesim.VersionNew), ConfigDir: t.TempDir(), MaxRetries: -1,
		Environ: []string{"PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=" + apiKey, "ANTHROPIC_BASE_URL=" + counting.url},
	})
	require.NoError(t, err)
	for _, model := range []string{"haiku", "sonnet"} {
		counting.reset()
		b := &bench{dir: t.TempDir()}
		invocation := b.invocation("look")
		invocation.Model, invocation.MaxTurns, invocation.Limits = model, turns, claude.Limits{Wall: 5 * time.Minute}
		invocation.Tools, invocation.AllowedTools = []string{"Bash"}, []string{"Bash"}
		_, err := cli.Run(t.Context(), invocation, nil)
		require.Equal(t, claude.KindMaxTurns, claude.KindOf(err), "%v", err)
		calls, longest := counting.counted()
		require.Greater(t, calls, turns/2)
		if model == "haiku" {
			require.Less(t, longest, dearAbove)
		} else {
			require.Greater(t, longest, dearAbove, "no reason to forget anything")
		}
	}
}

// counter is a proxy of an API that counts the tokens of prompts, four bytes each, and says so in the answers.
type counter struct {
	url string

	mutex   sync.Mutex
	calls   int
	longest int
}

func countTokens(t *testing.T, target string) *counter {
	t.Helper()
	address, err := url.Parse(target)
	require.NoError(t, err)
	const bytesOfToken = 4
	c := &counter{}
	pass := httputil.NewSingleHostReverseProxy(address)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		whole := httptest.NewRecorder()
		pass.ServeHTTP(whole, r)
		tokens := len(body) / bytesOfToken
		if r.URL.Path == "/v1/messages" {
			c.mutex.Lock()
			c.calls, c.longest = c.calls+1, max(c.longest, tokens)
			c.mutex.Unlock()
		}
		for name, values := range whole.Header() {
			if name != "Content-Length" {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(whole.Code)
		said := fmt.Sprintf(`"input_tokens":%d`, claudesim.DefaultUsage().Input)
		_, _ = io.WriteString(w, strings.ReplaceAll(whole.Body.String(), said, fmt.Sprintf(`"input_tokens":%d`, tokens)))
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *counter) reset() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.calls, c.longest = 0, 0
}

func (c *counter) counted() (calls, longest int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.calls, c.longest
}

// TestNames asks the real CLIs for the model of each alias. The price list takes what they say.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, version := range simtest.Versions(t) {
		t.Run(simtest.Number(t, version), func(t *testing.T) {
			t.Parallel()
			cli, err := claude.Locate(t.Context(), claude.Options{Path: simtest.RealCLI(t, version), Environ: []string{"PATH=" + os.Getenv("PATH")}})
			require.NoError(t, err)
			for _, alias := range []string{"haiku", "sonnet", "opus"} {
				require.Equal(t, cli.FullName(alias), cli.Names(t.Context(), alias))
			}
			require.Equal(t, "claude-haiku-4-5", cli.Names(t.Context(), "claude-haiku-4-5"))
		})
	}
	cli, err := claude.Locate(t.Context(), claude.Options{
		Path: simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Say("hello")))), Environ: []string{"PATH=" + os.Getenv("PATH"), "CLAUDE_CODE_USE_BEDROCK=1"},
	})
	require.NoError(t, err)
	require.Empty(t, cli.Names(t.Context(), "haiku"), "it would call the provider")
}
