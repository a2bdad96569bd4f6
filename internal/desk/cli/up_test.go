package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/daily"
	"github.com/claudeops/claudeops/internal/desk/cli/local"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestUpGoesOnWithWhatWasRunning stops `up` during a tool call, as Ctrl-C does. It starts `up` again on the same
// state directory and checks that the chain continues and ends there.
func TestUpGoesOnWithWhatWasRunning(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts Temporal servers; not with -short")
	}
	marker := filepath.Join(t.TempDir(), "started")
	claude, err := claudesim.Install(t.TempDir(), claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "ended before its work was done"}, claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictHealthy, Summary: "all is well",
		})),
		claudesim.Always(claudesim.Bash("touch "+marker+"; sleep 300"))))
	require.NoError(t, err)
	environ := clitest.Environment(t, "CLAUDEOPS_CLAUDE="+claude, "PATH="+os.Getenv("PATH"), "CLAUDEOPS_POLICY_FILE="+simtest.OpenPolicy(t),
		"CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_DRAIN_TIMEOUT=1s",
		"CLAUDEOPS_DEPLOYMENT=ops", "CLAUDEOPS_BUILD_ID=v1") // up ignores these; with them, no chain would begin

	first := startUp(t, environ)
	twice := starter(t, environ, "up", "--port", "0", "--ui-port", "0", "--web-port", "0")
	require.Equal(t, program.ExitFailure, twice.Code)
	require.Regexp(t, "(?m)^claudeops: another `claudeops up` runs on the state directory .*/state: use that one, or set CLAUDEOPS_STATE_DIR", twice.Stderr)
	began := starter(t, append(environ, "TEMPORAL_ADDRESS="+first.Temporal), "run", "--id", "interrupted")
	require.Equal(t, program.ExitOK, began.Code, began.Stderr)
	require.Eventually(t, func() bool { _, err := os.Stat(marker); return err == nil }, clitest.Timeout, clitest.Look)
	stopped := starter(t, append(environ, "TEMPORAL_ADDRESS="+first.Temporal), "stop")
	require.Equal(t, program.ExitOK, stopped.Code, stopped.Stderr)
	require.Equal(t, "Stopping. Agents have up to 1s to finish …\n"+
		"Stopped. These chains and the schedules go on at the next `claudeops up`:\n  interrupted  running\n", stopped.Stdout)
	require.NoError(t, first.command.Wait())
	none := starter(t, environ, "stop")
	require.Equal(t, program.ExitFailure, none.Code)
	require.Contains(t, none.Stderr, "claudeops: no `claudeops up` serves on this state directory: ")

	second := startUp(t, environ)
	environ = append(environ, "TEMPORAL_ADDRESS="+second.Temporal)
	var chain escalation.Chain
	require.Eventually(t, func() bool {
		shown := starter(t, environ, "chain", "interrupted", "-o", "json")
		return shown.Code == program.ExitOK && json.Unmarshal([]byte(shown.Stdout), &chain) == nil && chain.Outcome != ""
	}, clitest.Timeout, clitest.Look, "the chain did not go on")
	require.Equal(t, escalation.OutcomeHealthy, chain.Outcome, chain.Reason)
	require.Len(t, chain.Sessions, 1)
	require.Equal(t, 2, chain.Sessions[0].Attempts)
	second.interrupt(t)
}

// TestUpOnATerminal checks that a terminal shows a line for a chain, and that the log goes to a file.
func TestUpOnATerminal(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	claude, err := claudesim.Install(t.TempDir(), claudesim.Play(claudesim.Always(
		claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}))))
	require.NoError(t, err)
	environ := clitest.Environment(t, "CLAUDEOPS_CLAUDE="+claude, "PATH="+os.Getenv("PATH"))
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), self, "up", "--port", "0", "--ui-port", "0", "--web-port", "0")
	command.Env = append([]string{asStarter + "=1"}, environ...)
	screen, err := pty.Start(command)
	require.NoError(t, err)
	t.Cleanup(func() { _ = command.Process.Kill(); _ = screen.Close() })
	defer time.AfterFunc(2*time.Minute, func() { _ = command.Process.Kill() }).Stop() // then nothing more is shown
	var shown strings.Builder
	lines := bufio.NewScanner(screen)
	until := func(pattern string) string {
		for lines.Scan() {
			shown.WriteString(lines.Text() + "\n")
			if found := regexp.MustCompile(pattern).FindStringSubmatch(lines.Text()); found != nil {
				return found[len(found)-1]
			}
		}
		require.Fail(t, "the terminal does not show "+pattern, shown.String())
		return ""
	}
	address := until(`Temporal  (\S+), and`)
	log := until(`Log +(/.*up\.log)`)
	until("Ctrl-C or")
	ran := starter(t, append(environ, "TEMPORAL_ADDRESS="+address), "run", "--wait", "--id", "look")
	require.Equal(t, program.ExitOK, ran.Code, ran.Stderr)
	until(`UTC  chain look ended after 1 session for \S+: healthy`)
	require.NotContains(t, shown.String(), "level=INFO")
	kept, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(kept), "level=INFO")
	require.NoError(t, command.Process.Signal(syscall.SIGTERM))
	until("Stopped. Started again")
	require.NoError(t, command.Wait())
}

// TestUpIsClosedToItsAgents lets an agent with unlimited commands request the Web UI and gRPC: directly, and from a
// process that left its session, its parent and its environment. The requests carry the valid token.
func TestUpIsClosedToItsAgents(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere nobody can tell who opens a connection")
	}
	_, err := exec.LookPath("curl")
	require.NoError(t, err, "install curl: the agent of this test asks with it")
	dir := t.TempDir()
	address, plainly, hidden := filepath.Join(dir, "address"), filepath.Join(dir, "plainly"), filepath.Join(dir, "hidden")
	const ask = `curl -sS -i -H "Authorization: Bearer $(cat %[1]s.token)" $(cat %[1]s)/api/v1/namespaces > %[2]s; ` +
		`printf "\\0\\0\\0\\0\\0" | curl -sS -i --http2-prior-knowledge -H "Authorization: Bearer $(cat %[1]s.token)" ` +
		`-H "content-type: application/grpc" -H "te: trailers" --data-binary @- ` +
		`http://$(cat %[1]s.grpc)/temporal.api.workflowservice.v1.WorkflowService/GetSystemInfo >> %[2]s; ` +
		`curl -sS -i -H "Authorization: Bearer $(cat %[1]s.token)" $(cat %[1]s.pages)/ > %[2]s.pages; ` +
		`curl -sS -i "$(cat %[1]s.pages)/?token=$(cat %[1]s.token)" >> %[2]s.pages`
	claude, err := claudesim.Install(t.TempDir(), claudesim.Play(claudesim.Always(
		claudesim.Bash("sh "+script(t, fmt.Sprintf(ask, address, plainly))),
		claudesim.Bash("sh "+script(t, "env -i \"PATH=$PATH\" setsid sh -c '("+fmt.Sprintf(ask, address, hidden)+") & wait'")),
		claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}))))
	require.NoError(t, err)
	environ := clitest.Environment(t, "CLAUDEOPS_CLAUDE="+claude, "PATH="+os.Getenv("PATH"), "CLAUDEOPS_POLICY_FILE="+simtest.OpenPolicy(t),
		"CLAUDEOPS_TIER1_TOOLS=Bash")

	up := startUp(t, environ)
	require.NoError(t, os.WriteFile(address, []byte(up.WebUI), 0o600))
	require.NoError(t, os.WriteFile(address+".pages", []byte(up.Pages), 0o600))
	require.NoError(t, os.WriteFile(address+".grpc", []byte(up.Temporal), 0o600))
	token := settingsOf(t, environ).value(t, "TEMPORAL_API_KEY")
	require.NoError(t, os.WriteFile(address+".token", []byte(token), 0o600))
	require.Equal(t, http.StatusOK, fetch(t, http.MethodGet, up.WebUI+"/api/v1/namespaces", "Bearer "+token, "").status, "it is open to others")
	require.Equal(t, http.StatusOK, fetch(t, http.MethodGet, up.Pages+"/", "Bearer "+token, "").status, "so are the pages")
	ran := starter(t, append(environ, "TEMPORAL_ADDRESS="+up.Temporal), "run", "--wait")
	require.Equal(t, program.ExitOK, ran.Code, ran.Stderr)
	for _, file := range []string{plainly, hidden} {
		answer, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(answer), "403 Forbidden", file)
		require.Contains(t, string(answer), "this server is not for agents", file)
		require.Contains(t, string(answer), "grpc-status: 7", "gRPC denies the permission: %s", file)
		pages, err := os.ReadFile(file + ".pages")
		require.NoError(t, err)
		require.Equal(t, 2, strings.Count(string(pages), "403 Forbidden"), "%s: %s", file, pages)
		require.NotContains(t, string(pages), "200 OK")
		require.NotContains(t, string(pages), "Set-Cookie")
	}

	for _, url := range []string{up.WebUI, up.Pages, "http://" + up.Temporal} {
		_, err := claudesim.Install(filepath.Dir(claude), claudesim.Play(claudesim.Always(
			claudesim.Bash("curl -sS "+url+" "+token),
			claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "its token is " + token}))))
		require.NoError(t, err)
		ran := starter(t, append(environ, "TEMPORAL_ADDRESS="+up.Temporal), "run", "--wait", "--output", "json")
		require.Equal(t, program.ExitOK, ran.Code, ran.Stderr)
		var view daily.Chain
		require.NoError(t, json.Unmarshal([]byte(ran.Stdout), &view))
		shown := starter(t, append(environ, "TEMPORAL_ADDRESS="+up.Temporal), "chain", view.ID, "--output", "json")
		require.NoError(t, json.Unmarshal([]byte(shown.Stdout), &view))
		require.NotEmpty(t, view.Calls, shown.Stdout)
		require.False(t, view.Calls[0].Allowed, "%s is shut to agents, whatever the policy grants", url)
		require.Contains(t, view.Calls[0].Reason, "supervisor")
		require.Contains(t, shown.Stdout, "its token is [masked")
		require.NotContains(t, shown.Stdout, token)
	}
	up.interrupt(t)
}

// TestPagesAreClosedToAgentsOfEachTier lets an agent of each tier request the pages and the API with the valid token:
// in a header, by the link, and as a login. It also lets the agent look for the token where the server keeps it.
func TestPagesAreClosedToAgentsOfEachTier(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere nobody can tell who opens a connection")
	}
	dir := t.TempDir()
	const ask = `P=$(cat %[1]s/pages); T=$(cat %[1]s/token); O="-sS -i -o -"; ` +
		`curl $O -H "Authorization: Bearer $T" $P/api/v1/chains; curl $O "$P/?token=$T"; curl $O --data-urlencode "token=$T" $P/login; ` +
		`curl $O -H "Authorization: Bearer $T" -H "Content-Type: application/json" -d '{"start_tier":3}' $P/api/v1/chains; ` +
		`curl $O -H "X-Forwarded-User: ada" $P/`
	turn := func(model string) claudesim.Turn {
		return claudesim.On(claudesim.Match{Model: model},
			claudesim.Bash("sh "+script(t, "("+fmt.Sprintf(ask, dir)+") > "+filepath.Join(dir, model)+" 2>&1")),
			claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}))
	}
	claude, err := claudesim.Install(t.TempDir(), claudesim.Play(turn("haiku"), turn("sonnet"), turn("opus")))
	require.NoError(t, err)
	environ := clitest.Environment(t, "CLAUDEOPS_CLAUDE="+claude, "PATH="+os.Getenv("PATH"), "CLAUDEOPS_POLICY_FILE="+simtest.OpenPolicy(t),
		"CLAUDEOPS_TIER1_TOOLS=Bash")
	up := startUp(t, environ)
	token := settingsOf(t, environ).value(t, "TEMPORAL_API_KEY")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pages"), []byte(up.Pages), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600))
	environ = append(environ, "TEMPORAL_ADDRESS="+up.Temporal)
	for tier, model := range map[string]string{"1": "haiku", "2": "sonnet", "3": "opus"} {
		ran := starter(t, environ, "run", "--wait", "--tier", tier)
		require.Equal(t, program.ExitOK, ran.Code, ran.Stderr)
		answers, err := os.ReadFile(filepath.Join(dir, model))
		require.NoError(t, err)
		require.Equal(t, 5, strings.Count(string(answers), "HTTP/1.1 403 Forbidden"), "tier %s: %s", tier, answers)
		require.Equal(t, 5, strings.Count(string(answers), "this server is not for agents"), "tier %s: %s", tier, answers)
	}
	require.Equal(t, http.StatusOK, fetch(t, http.MethodGet, up.Pages+"/api/v1/chains", "Bearer "+token, "").status, "it is open to others")
	up.interrupt(t)
}

// script writes a shell script. The guard does not inspect the content of scripts.
func script(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// upProcess is `claudeops up` running as a separate process.
type upProcess struct {
	local.Running

	command *exec.Cmd
	// said holds the process's stderr. Read it only after the process has ended.
	said *strings.Builder
}

func startUp(t *testing.T, environ []string) upProcess {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	up := upProcess{
		command: exec.CommandContext(t.Context(), self, "up", "--port", "0", "--ui-port", "0", "--web-port", "0", "--output", "json"),
		said:    new(strings.Builder),
	}
	up.command.Env = append([]string{asStarter + "=1"}, environ...)
	up.command.Stderr = io.MultiWriter(os.Stderr, up.said)
	stdout, err := up.command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, up.command.Start())
	t.Cleanup(func() { _ = up.command.Process.Kill() })
	require.NoError(t, json.NewDecoder(stdout).Decode(&up.Running))
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	return up
}

// interrupt sends SIGINT, as Ctrl-C does, and checks that the process exits with code 0.
func (p upProcess) interrupt(t *testing.T) {
	t.Helper()
	require.NoError(t, p.command.Process.Signal(syscall.SIGINT))
	require.NoError(t, p.command.Wait())
}
