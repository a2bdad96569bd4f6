package cli

import (
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/notifytest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestWhatKeepsAgentsFromWorkingIsSaid lets the real CLIs run into credentials and addresses that are wrong. The same
// sentence is where people look: in `doctor` and `up` before any session if it shows without paying, in `run` with and
// without --wait, on the first page and that of the chain, and in the notification.
func TestWhatKeepsAgentsFromWorkingIsSaid(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts Temporal servers and the real CLI; not with -short")
	}
	away := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(away.Close)
	answering := func(reply claudesim.Reply) func(t *testing.T) []string {
		return func(t *testing.T) []string {
			t.Helper()
			return []string{
				"ANTHROPIC_API_KEY=not-a-key", "ANTHROPIC_BASE_URL=" + simtest.StartAPI(t, claudesim.Play(claudesim.Always(reply))).URL(),
			}
		}
	}
	for name, tt := range map[string]struct {
		environ func(t *testing.T) []string
		want    string
		free    bool // it shows without paying, so doctor and up say it before any session
	}{
		"not logged in": {func(*testing.T) []string { return nil }, "agents find no credentials in this environment, and none in ", true},
		"address ends in v1": {func(*testing.T) []string {
			return []string{"ANTHROPIC_API_KEY=not-a-key", "ANTHROPIC_BASE_URL=" + away.URL + "/v1"}
		}, "and the CLI itself adds /v1: set it to ", true},
		"refused":  {answering(claudesim.Fail(401, "invalid x-api-key")), "refuses the credentials in ANTHROPIC_API_KEY (401): correct the variable", true},
		"no money": {answering(claudesim.Fail(400, "Your credit balance is too low to access the Anthropic API.")), "cannot pay: Credit balance is too low", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, version := range simtest.Versions(t) {
				t.Run(simtest.Number(t, version), func(t *testing.T) {
					t.Parallel()
					people := notifytest.Start(t)
					environ := clitest.Environment(t, append(tt.environ(t), "CLAUDEOPS_CLAUDE="+simtest.RealCLI(t, version), "PATH="+os.Getenv("PATH"),
						"CLAUDEOPS_NOTIFY_URLS="+people.Generic(), "CLAUDEOPS_GATE_TIMEOUT=1h")...)
					up := startUp(t, environ)
					if tt.free {
						require.Contains(t, up.Problem, tt.want)
						require.Contains(t, starter(t, environ, "doctor").Stdout, tt.want)
					}
					environ = append(environ, "TEMPORAL_ADDRESS="+up.Temporal)
					began := time.Now()
					ran := starter(t, environ, "run", "--id", "first", "--yes")
					require.Equal(t, program.ExitOK, ran.Code, ran.Stderr)
					t.Logf("run without --wait took %s: %q", time.Since(began).Round(time.Millisecond), ran.Stdout)
					require.Eventually(t, func() bool { return len(people.Received()) > 0 }, clitest.Timeout, clitest.Look)
					require.Contains(t, people.Received()[0], tt.want)
					t.Logf("people were told within %s", time.Since(began).Round(time.Millisecond))
					require.Contains(t, starter(t, environ, "chain", "first").Stdout, tt.want)
					for _, path := range []string{"/", "/chains/first"} {
						require.Contains(t, pageOf(t, environ, up, path), tt.want, path)
					}
					waited := starter(t, environ, "run", "--id", "second", "--wait", "--yes")
					require.Contains(t, waited.Stdout+waited.Stderr, tt.want)
					up.interrupt(t)
				})
			}
		})
	}
}

// pageOf returns the text of a page of `up`.
func pageOf(t *testing.T, environ []string, up upProcess, path string) string {
	t.Helper()
	token := settingsOf(t, environ).value(t, "TEMPORAL_API_KEY")
	return html.UnescapeString(fetch(t, http.MethodGet, up.Pages+path, "Bearer "+token, "").body)
}
