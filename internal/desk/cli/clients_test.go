package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// temporalClient is a command-line client of Temporal: temporal or tctl.
type temporalClient struct {
	path string
	// chainFlag is the flag that takes the workflow ID.
	chainFlag string
}

// temporalClients returns the real clients by name. `make clients` builds them.
func temporalClients(t *testing.T) map[string]temporalClient {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	clients := map[string]temporalClient{
		"temporal": {chainFlag: "--workflow-id"},
		"tctl":     {chainFlag: "--workflow_id"},
	}
	for name, c := range clients {
		c.path = filepath.Join(simtest.ModuleRoot(t), "bin", "clients", name)
		if _, err := os.Stat(c.path); err != nil {
			t.Skipf("the real %s is not there: `make clients` builds it, which takes minutes, and runs this", name)
		}
		clients[name] = c
	}
	return clients
}

// run runs the client with variables as its environment and returns its output. It fails the test if the client
// fails.
func (c temporalClient) run(t *testing.T, variables []string, args ...string) string {
	t.Helper()
	printed, err := c.try(t, variables, args...)
	require.NoError(t, err, "%q: %s", args, printed)
	t.Logf("%s %q:\n%s", filepath.Base(c.path), args, printed)
	return printed
}

// alone runs the program $2 with its arguments when the process $1 has gone, and writes what it prints to the file OUT
// and its exit code to the file CODE.
const alone = `while kill -0 "$1" 2>/dev/null; do sleep 0.02; done
shift; "$@" >"$OUT" 2>&1; echo $? >"$CODE.new"; mv "$CODE.new" "$CODE"`

// try is like run, but returns the client's error. The client is no child of this process, as it is none of a worker:
// the server refuses the children of the worker in this process, which could be agents. Its parent ends before it
// starts.
func (c temporalClient) try(t *testing.T, variables []string, args ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	out, code := filepath.Join(dir, "out"), filepath.Join(dir, "code")
	parent := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `sh -c "$ALONE" alone $$ "$@" &`, "parent", c.path}, args...)...)
	parent.Env = append([]string{
		"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "OUT=" + out, "CODE=" + code, "ALONE=" + alone,
	}, variables...)
	require.NoError(t, parent.Run())
	var ended []byte
	require.Eventually(t, func() bool {
		var err error
		ended, err = os.ReadFile(code)
		return err == nil
	}, clitest.Timeout, clitest.Look, "%s %q does not end", c.path, args)
	printed, err := os.ReadFile(out)
	require.NoError(t, err)
	if exit := strings.TrimSpace(string(ended)); exit != "0" {
		return string(printed), errors.New("exit code " + exit)
	}
	return string(printed), nil
}

// evaluated runs the output of `claudeops env` in a shell and returns the shell's environment.
func evaluated(t *testing.T, environ []string) []string {
	t.Helper()
	lines := starter(t, environ, "env")
	require.Equal(t, program.ExitOK, lines.Code, lines.Stderr)
	shell := exec.CommandContext(t.Context(), "sh", "-c", `eval "$LINES_TO_RUN"; unset LINES_TO_RUN; env`)
	shell.Env = []string{"PATH=" + os.Getenv("PATH"), "LINES_TO_RUN=" + lines.Stdout}
	variables, err := shell.Output()
	require.NoError(t, err)
	return slices.DeleteFunc(strings.Split(string(variables), "\n"), func(line string) bool { return !strings.HasPrefix(line, "TEMPORAL_") })
}

// TestClientsRunTheDocumentation runs the commands of docs/temporal-tools.md with the real temporal and tctl. The
// commands start a chain, answer its gate and escalate it to tier 3.
func TestClientsRunTheDocumentation(t *testing.T) {
	clients := temporalClients(t)
	environ := startInstallation(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "look at the reverse proxy"}, claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictResolved, Summary: "the proxy had the old address", Services: []string{"jellyfin"},
		})),
		claudesim.Always(claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictNeedsHuman, Summary: "it stutters", Services: []string{"jellyfin"},
		}))), "CLAUDEOPS_GATE_TIMEOUT=1h")
	variables := evaluated(t, environ)
	for name, c := range clients {
		t.Run(name, func(t *testing.T) { // not parallel: both chains repair the same service
			bare := slices.DeleteFunc(slices.Clone(variables), func(v string) bool {
				return strings.HasPrefix(v, "TEMPORAL_API_KEY=") || strings.HasPrefix(v, "TEMPORAL_CLI_AUTH=")
			})
			refused, err := c.try(t, bare, "workflow", "list")
			require.Error(t, err, refused)
			require.Contains(t, refused, "Request unauthorized")
			chain := "chain-by-" + name
			gateOpens := func(gate string) {
				t.Helper()
				require.Eventually(t, func() bool {
					return strings.Contains(starter(t, environ, "gate", "-o", "json").Stdout, chain) &&
						strings.Contains(starter(t, environ, "chain", chain).Stdout, "Gate "+gate+" ")
				}, clitest.Timeout, clitest.Look, "%s does not open: %s", gate, starter(t, environ, "chain", chain).Stdout)
			}
			commands := map[string][]string{} // by verb, or by the name of the signal or update
			for _, words := range temporalCommands(t, name) {
				doing := words[2]
				if i := slices.Index(words, "--name"); i > 0 {
					doing = words[i+1]
				}
				commands[doing] = words[1:]
			}
			give := func(doing string) {
				t.Helper()
				require.Contains(t, commands, doing)
				words := slices.Clone(commands[doing])
				if i := slices.Index(words, "CHAIN"); i > 0 {
					words[i] = chain
				} else { // the README's command names no chain ID
					words = append(words, c.chainFlag, chain)
				}
				c.run(t, variables, words...)
			}

			give("start")
			gateOpens("gate-1")
			give("resolve-gate")
			gateOpens("gate-2")
			give("escalate")

			require.Eventually(t, func() bool {
				return strings.Contains(starter(t, environ, "chain", chain).Stdout, "Outcome: resolved")
			}, clitest.Timeout, clitest.Look, "it does not end")
			tree := starter(t, environ, "chain", chain).Stdout
			t.Log("\n" + tree)
			require.Contains(t, tree, "anna answered fix at ")
			require.Contains(t, tree, "Tier 3  opus")
		})
	}
}

// TestClientsCancel uses the real temporal to find and cancel a chain that waits at its gate.
func TestClientsCancel(t *testing.T) {
	t.Parallel()
	temporal := temporalClients(t)["temporal"]
	environ := startInstallation(t, claudesim.Play(claudesim.Always(claudesim.Conclude(escalation.Verdict{
		Status: escalation.VerdictNeedsHuman, Summary: "it stutters",
	}))), "CLAUDEOPS_GATE_TIMEOUT=1h")
	variables := evaluated(t, environ)
	require.Equal(t, program.ExitOK, starter(t, environ, "run", "--id", "unwanted").Code)
	require.Eventually(t, func() bool {
		return strings.Contains(starter(t, environ, "chain", "unwanted").Stdout, "Gate gate-1 ")
	}, clitest.Timeout, clitest.Look)

	queried := temporal.run(t, variables, "workflow", "query", "--workflow-id", "unwanted", "--type", "gate")
	require.Contains(t, queried, "gate-1")
	listed := temporal.run(t, variables, "workflow", "list", "--query", `ClaudeOpsGate="open"`)
	require.Contains(t, listed, "unwanted")
	temporal.run(t, variables, "workflow", "cancel", "--workflow-id", "unwanted")
	require.Eventually(t, func() bool {
		return strings.Contains(starter(t, environ, "chain", "unwanted").Stdout, "Outcome: aborted")
	}, clitest.Timeout, clitest.Look)
}

// TestClientsAddSearchAttributes runs commands with the real temporal. A worker that may not add the search
// attributes prints these commands.
func TestClientsAddSearchAttributes(t *testing.T) {
	t.Parallel()
	temporal := temporalClients(t)["temporal"]
	logger := (&console.Console{Process: program.Process{Stderr: t.Output()}}).QuietLogger()
	server, err := embedded.Start(t.Context(), embedded.Options{NoUI: true, Logger: logger})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	c, err := supervisor.Connect(t.Context(), client.Options{HostPort: server.Address(), Logger: logger})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	missing := func() error {
		keys, err := supervisor.MissingAttributes(t.Context(), c, client.DefaultNamespace)
		require.NoError(t, err)
		if len(keys) == 0 {
			return nil
		}
		return &supervisor.MissingAttributesError{Namespace: client.DefaultNamespace, Missing: keys}
	}
	advice := missing()
	require.Error(t, advice)
	for line := range strings.Lines(advice.Error()) {
		if command, is := strings.CutPrefix(strings.TrimSpace(line), "temporal "); is {
			temporal.run(t, []string{"TEMPORAL_ADDRESS=" + server.Address()}, strings.Fields(command)...)
		}
	}
	require.Eventually(t, func() bool { return missing() == nil }, clitest.Timeout, clitest.Look)
}
