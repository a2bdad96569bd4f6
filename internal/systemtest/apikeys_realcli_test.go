//go:build linux

package systemtest

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// realKey and realHeader are the worker's credentials in these tests. Their values occur nowhere else.
const (
	realKey    = "sk-real-7c1e9f2ab4d05e63"
	realHeader = "gateway-90b3f6d2c8a1"
)

// checkpoint is a proxy in front of the API. It counts the calls with exactly the worker's credentials (proper) and
// all other calls (improper).
type checkpoint struct {
	url              string
	proper, improper atomic.Int32
}

func startCheckpoint(t *testing.T, api *claudesim.API) *checkpoint {
	t.Helper()
	target, err := url.Parse(api.URL())
	require.NoError(t, err)
	c := &checkpoint{}
	forward := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") == realKey && r.Header.Get("X-Gateway") == realHeader && r.Header.Get("Authorization") == "" {
			c.proper.Add(1)
		} else {
			c.improper.Add(1)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// snoop prints the environment and the arguments of each process from the agent's command up to the CLI. Then it
// calls the API with the key from the CLI's environment: for the session's model, for a more expensive model, and at
// another path.
const snoop = `#!/bin/sh
p=$$
while [ "$p" -gt 1 ] && grep -qa "CLAUDEOPS_SESSION_ID=$CLAUDEOPS_SESSION_ID" "/proc/$p/environ"; do
	echo "process $p"
	tr '\0' '\n' <"/proc/$p/environ"
	tr '\0' ' ' <"/proc/$p/cmdline"
	echo
	cli=$p
	p=$(sed 's/.*) . \([0-9]*\) .*/\1/' "/proc/$p/stat")
done
ANTHROPIC_API_KEY=$(tr '\0' '\n' <"/proc/$cli/environ" | sed -n 's/^ANTHROPIC_API_KEY=//p')
ask() { curl -s -o /dev/null -w "$1 %{http_code}\n" -H "x-api-key: $ANTHROPIC_API_KEY" -d "$3" "$ANTHROPIC_BASE_URL$2"; }
ask own /v1/messages '{"model":"claude-haiku-5-5","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}'
ask dearer /v1/messages '{"model":"claude-opus-5-5","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}'
ask elsewhere /v1/files '{"model":"claude-haiku-5-5"}'
`

// TestRealCLICredentialsStayWithTheWorker has the agent look for credentials in the environments, arguments and files
// of its process tree. The worker's credentials must not be there, and not in logs, histories or files either. After
// the session its key must be invalid.
func TestRealCLICredentialsStayWithTheWorker(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, _ claudesim.Version, cli string) {
		api := simtest.StartAPI(t, claudesim.Play(claudesim.Always(
			claudesim.Bash("env"), claudesim.Bash("cat /proc/self/environ"), claudesim.Bash("cat /proc/$PPID/environ"),
			claudesim.Bash("./snoop.sh"), claudesim.Conclude(allWell()))))
		gate := startCheckpoint(t, api)
		workDir := t.TempDir()
		require.NoError(t, process.WriteProgram(filepath.Join(workDir, "snoop.sh"), []byte(snoop)))
		environ := environment(t, cli, append(toolsAllowed(), "CLAUDEOPS_WORK_DIR="+workDir,
			"ANTHROPIC_BASE_URL="+gate.url, "ANTHROPIC_API_KEY="+realKey, "ANTHROPIC_CUSTOM_HEADERS=X-Gateway: "+realHeader,
			"CLAUDEOPS_PASS_ENV=ANTHROPIC_*,COPY_OF_THE_KEY=claude", "COPY_OF_THE_KEY="+realKey)...)
		s, book := startLoggedSite(t, startTemporal(t), environ)
		run := s.start(nil)
		chain, err := s.finish(run)
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeHealthy, chain.Outcome, "%s %+v", chain.Reason, chain.Last())

		requests := api.Requests()
		seen := requests[len(requests)-1].ToolResults()
		require.GreaterOrEqual(t, len(seen), 4)
		for i, what := range []string{"env", "its own environment", "the shell's parent", "the script"} {
			ofCLI := what == "the shell's parent" || what == "the script"
			require.Equal(t, ofCLI, strings.Contains(seen[i], "ANTHROPIC_API_KEY=claudeops-session-"), what)
			require.Contains(t, seen[i], "CLAUDEOPS_SESSION_ID="+chain.Last().SessionID, what)
		}
		require.GreaterOrEqual(t, strings.Count(seen[3], "\nprocess "), 2, "the script, its shell and the CLI: %s", seen[3])
		require.Contains(t, seen[3], "--output-format stream-json", "the CLI's arguments")
		require.Contains(t, seen[3], "own 200\ndearer 403\nelsewhere 404")
		require.NotZero(t, gate.proper.Load())
		require.Zero(t, gate.improper.Load(), "every call has the worker's credentials, and only those")

		for _, place := range append([]string{
			book.last(1 << 20), historyText(t, s, run.GetID(), run.GetRunID()), filesBelow(t, workDir),
			filesBelow(t, s.cfg.State.Dir), filesBelow(t, filepath.Dir(s.cfg.State.Dir)), // the home directory with everything below it
		}, seen...) {
			require.NotEmpty(t, place)
			require.NotContains(t, place, realKey)
			require.NotContains(t, place, realHeader)
		}
		requireNoLongerValid(t, seen[2])
		require.Positive(t, chain.Last().CostUSD)
		require.False(t, chain.Last().CostEstimated)
	})
}

// requireNoLongerValid checks that the proxy refuses the key of a session that has ended. environ is the environment
// that the agent printed.
func requireNoLongerValid(t *testing.T, environ string) {
	t.Helper()
	valueOf := func(name string) string {
		found := regexp.MustCompile(`(?:^|[\s\x00])` + name + `=([^\s\x00]+)`).FindStringSubmatch(environ)
		require.Len(t, found, 2, "%s in %s", name, environ)
		return found[1]
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, valueOf("ANTHROPIC_BASE_URL")+"/v1/messages",
		strings.NewReader(`{"model":"claude-haiku-5-5","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`))
	require.NoError(t, err)
	request.Header.Set("X-Api-Key", valueOf("ANTHROPIC_API_KEY"))
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
}

// historyText returns a chain's whole history as text.
func historyText(t *testing.T, s *site, id, runID string) string {
	t.Helper()
	var text strings.Builder
	events := s.client.GetWorkflowHistory(t.Context(), id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		_, _ = fmt.Fprintln(&text, protojson.Format(event))
		for _, payload := range event.GetActivityTaskCompletedEventAttributes().GetResult().GetPayloads() {
			_, _ = fmt.Fprintln(&text, string(payload.GetData()))
		}
	}
	return text.String()
}

// filesBelow returns the content of all files below dir.
func filesBelow(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	files := os.DirFS(dir)
	require.NoError(t, fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		_, _ = text.Write(content)
		return err
	}))
	return text.String()
}
