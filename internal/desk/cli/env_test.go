package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/local"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/workflows"
)

// TestUpAsksForItsToken starts `up` twice on one state directory. It then acts as an operator, as a user who does not
// know the directory, and as a program without the token. None of these is an agent.
func TestUpAsksForItsToken(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts Temporal servers; not with -short")
	}
	claude, err := claudesim.Install(t.TempDir(), claudesim.Play(claudesim.Always(claudesim.Conclude(escalation.Verdict{
		Status: escalation.VerdictHealthy, Summary: "all is well",
	}))))
	require.NoError(t, err)
	environ := slices.DeleteFunc(clitest.Environment(t, "CLAUDEOPS_CLAUDE="+claude, "PATH="+os.Getenv("PATH")),
		func(v string) bool { return strings.HasPrefix(v, "TEMPORAL_ADDRESS=") })

	up := startUp(t, environ)
	settings := settingsOf(t, environ)
	token := settings.value(t, "TEMPORAL_API_KEY")
	require.Equal(t, up.Temporal, settings.value(t, "TEMPORAL_ADDRESS"))
	require.Equal(t, up.Temporal, settings.value(t, "TEMPORAL_CLI_ADDRESS"))
	require.Equal(t, "Bearer "+token, settings.value(t, "TEMPORAL_CLI_AUTH"))
	require.Equal(t, up.WebUI+"?token="+token, settings.WebUI)
	require.Equal(t, up.Pages+"?token="+token, settings.Pages)
	for _, file := range []string{"cmdline", "environ"} {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", up.command.Process.Pid, file))
		if !os.IsNotExist(err) { // there is no such file on systems other than Linux
			require.NoError(t, err)
			require.NotContains(t, string(content), token)
		}
	}
	info, err := os.Stat(filepath.Join(up.StateDir, "up", "token"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	ran := starter(t, environ, "run", "--id", "by-operator", "--wait")
	require.Equal(t, program.ExitOK, ran.Code, ran.Stderr)
	require.Contains(t, starter(t, environ, "doctor").Stdout, "✓ temporal           "+up.Temporal)
	requireRefused(t, up)
	stranger := clitest.Environment(t, "TEMPORAL_ADDRESS="+up.Temporal)
	for _, more := range [][]string{nil, {"TEMPORAL_API_KEY=wrong", "TEMPORAL_TLS=false"}} {
		refused := starter(t, append(slices.Clone(stranger), more...), "chains")
		require.Equal(t, program.ExitFailure, refused.Code)
		require.Contains(t, refused.Stderr, "this Temporal belongs to a `claudeops up` and wants its token: set CLAUDEOPS_STATE_DIR to")
	}
	guest := stranger
	for _, variable := range settings.Variables {
		guest = append(guest, variable.Name+"="+variable.Value)
	}
	listed := starter(t, guest, "chains")
	require.Equal(t, program.ExitOK, listed.Code, listed.Stderr)
	up.interrupt(t)
	require.NotContains(t, up.said.String(), token, "the log")

	require.Equal(t, program.ExitFailure, starter(t, environ, "env").Code, "it runs no more")
	again := startUp(t, environ)
	require.Equal(t, token, settingsOf(t, environ).value(t, "TEMPORAL_API_KEY"))
	require.Equal(t, program.ExitOK, starter(t, environ, "chain", "by-operator").Code)
	again.interrupt(t)
}

// requireRefused checks that a request without the token is refused by gRPC, and that the Web UI refuses to start a
// chain.
func requireRefused(t *testing.T, up upProcess) {
	t.Helper()
	conn, err := grpc.NewClient(up.Temporal, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = workflowservice.NewWorkflowServiceClient(conn).ListNamespaces(t.Context(), &workflowservice.ListNamespacesRequest{})
	require.Equal(t, codes.PermissionDenied, status.Code(err), "%v", err)
	for _, authorization := range []string{"", "x", "Bearer x"} {
		started := fetch(t, http.MethodPost, up.WebUI+"/api/v1/namespaces/default/workflows/tier-3", authorization,
			`{"workflowType":{"name":"EscalationChain"},"taskQueue":{"name":"claudeops"},"input":{"payloads":[`+payload(`{"start_tier":3}`)+`]}}`)
		require.Equal(t, http.StatusUnauthorized, started.status, started.body)
	}
}

// TestGateIsAnsweredByTheLink answers a gate through the Web UI. Without the token the answer is refused; with the
// link it is accepted.
func TestGateIsAnsweredByTheLink(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	claude, err := claudesim.Install(t.TempDir(), claudesim.Play(claudesim.Always(claudesim.Conclude(escalation.Verdict{
		Status: escalation.VerdictNeedsHuman, Summary: "it stutters",
	}))))
	require.NoError(t, err)
	environ := clitest.Environment(t, "CLAUDEOPS_CLAUDE="+claude, "PATH="+os.Getenv("PATH"), "CLAUDEOPS_GATE_TIMEOUT=1h")
	environ = slices.DeleteFunc(environ, func(v string) bool {
		return strings.HasPrefix(v, "TEMPORAL_ADDRESS=") || v == "CLAUDEOPS_GATE_TIMEOUT=0s"
	})
	up := startUp(t, environ)
	require.Equal(t, program.ExitOK, starter(t, environ, "run", "--id", "waits").Code)
	shows := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(starter(t, environ, "chain", "waits").Stdout, text) },
			clitest.Timeout, clitest.Look, text)
	}
	shows("Gate gate-1 ")

	answer := `{"input":{"payloads":[` + payload(`{"gate_id":"gate-1","action":"override","actor":"ada"}`) + `]}}`
	address := up.WebUI + "/api/v1/namespaces/default/workflows/waits/signal/" + workflows.ResolveGate
	require.Equal(t, http.StatusUnauthorized, fetch(t, http.MethodPost, address, "x", answer).status)
	require.Contains(t, starter(t, environ, "gate", "-o", "json").Stdout, "waits", "it waits still")

	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	opened, err := browser.Get(settingsOf(t, environ).WebUI)
	require.NoError(t, err)
	require.NoError(t, opened.Body.Close())
	require.Equal(t, http.StatusOK, opened.StatusCode)
	require.Equal(t, up.WebUI+"/", opened.Request.URL.String())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(answer))
	require.NoError(t, err)
	for _, cookie := range jar.Cookies(request.URL) {
		if cookie.Name == "_csrf" { // the Web UI's page sends this header, too
			request.Header.Set("X-CSRF-Token", cookie.Value)
		}
	}
	answered, err := browser.Do(request)
	require.NoError(t, err)
	require.NoError(t, answered.Body.Close())
	require.Equal(t, http.StatusOK, answered.StatusCode)
	shows("Outcome: accepted by a person")
	up.interrupt(t)
}

// clientSettings is the JSON output of `claudeops env`.
type clientSettings struct{ local.ClientSettings }

func settingsOf(t *testing.T, environ []string) clientSettings {
	t.Helper()
	printed := starter(t, environ, "env", "-o", "json")
	require.Equal(t, program.ExitOK, printed.Code, printed.Stderr)
	var settings clientSettings
	require.NoError(t, json.Unmarshal([]byte(printed.Stdout), &settings))
	return settings
}

func (s clientSettings) value(t *testing.T, name string) string {
	t.Helper()
	i := slices.IndexFunc(s.Variables, func(v local.Variable) bool { return v.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return s.Variables[i].Value
}

// fetched is an HTTP response.
type fetched struct {
	status int
	body   string
}

// fetch sends a request without cookies, as curl does. If authorization is empty, the header is omitted.
func fetch(t *testing.T, method, address, authorization, body string) fetched {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	require.NoError(t, err)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return fetched{response.StatusCode, string(content)}
}

// payload encodes a JSON value for the API of the Web UI.
func payload(value string) string {
	return fmt.Sprintf(`{"metadata":{"encoding":%q},"data":%q}`,
		base64.StdEncoding.EncodeToString([]byte("json/plain")), base64.StdEncoding.EncodeToString([]byte(value)))
}
