package cli

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/workflows"
)

// TestGivenSecretsAreMasked passes secrets to `run`, `schedule` and `gate`, and checks that no history contains them.
// It also checks that claudeops masks the secrets of a chain that another client has started.
func TestGivenSecretsAreMasked(t *testing.T) {
	t.Parallel()
	environ := startInstallation(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "guided"}, claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictResolved, Summary: "done"})),
		claudesim.Always(claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictNeedsHuman, Summary: "how?"})),
	), "CLAUDEOPS_GATE_TIMEOUT=1h", "FLEET_TOKEN="+clitest.Secrets[1])
	all := strings.Join(clitest.Secrets, " ")
	hinted := func(answer clitest.Result) {
		require.Equal(t, program.ExitOK, answer.Code, answer.Stderr)
		require.Equal(t, 1, strings.Count(answer.Stderr, console.MaskedHint), answer.Stderr)
	}
	hinted(starter(t, environ, "run", "--id", "chain-given", "--prompt", "log in with "+all))
	hinted(starter(t, environ, "schedule", "create", "given", "--every", "1h", "--paused", "--prompt", all, "--note", all))
	hinted(starter(t, environ, "schedule", "pause", "given", "--note", all))
	answer := func(id string) clitest.Result {
		var answered clitest.Result
		require.Eventually(t, func() bool {
			answered = starter(t, environ, "gate", id, "--action", "fix", "--guidance", "guided by "+all, "--actor", "ada")
			return answered.Code == program.ExitOK
		}, clitest.Timeout, clitest.Look, "the gate does not open")
		return answered
	}
	hinted(answer("chain-given"))

	ops := operations.New(operations.Options{
		Environ: environ, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Clock: time.Now, Masked: func() {},
	})
	t.Cleanup(func() { require.NoError(t, ops.Close()) })
	c, _, err := ops.Connect(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.GetWorkflow(t.Context(), "chain-given", "").Get(t.Context(), nil))
	clitest.RequireNoSecret(t, historyOf(t, c, "chain-given"))
	clitest.RequireNoSecret(t, starter(t, environ, "schedule", "describe", "given").Stdout)

	settings := settingsOf(t, environ)
	server := supervisor.LocalServer{Address: settings.value(t, "TEMPORAL_ADDRESS"), Token: settings.value(t, "TEMPORAL_API_KEY")}
	direct, err := client.DialContext(t.Context(), server.ClientOptions(client.Options{}))
	require.NoError(t, err)
	defer direct.Close()
	_, err = direct.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "chain-direct", TaskQueue: "claudeops"},
		workflows.ChainWorkflow, map[string]any{"prompt": all})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		update, err := direct.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
			WorkflowID: "chain-direct", UpdateName: workflows.ResolveGate, WaitForStage: client.WorkflowUpdateStageCompleted,
			Args: []any{escalation.GateAnswer{GateID: "gate-1", Action: escalation.GateFix, Guidance: "guided by " + all, Actor: "ada"}},
		})
		return err == nil && update.Get(t.Context(), nil) == nil
	}, clitest.Timeout, clitest.Look, "the gate does not open")
	require.NoError(t, direct.GetWorkflow(t.Context(), "chain-direct", "").Get(t.Context(), nil))
	require.Contains(t, historyOf(t, c, "chain-direct"), clitest.Secrets[0], "histories hold what is sent")
	for _, args := range [][]string{{"chain", "chain-direct"}, {"chain", "chain-direct", "-o", "json"}, {"watch", "chain-direct"}, {"chain", "2"}} {
		shown := starter(t, environ, args...)
		require.Equal(t, program.ExitOK, shown.Code, shown.Stderr)
		clitest.RequireNoSecret(t, shown.Stdout+shown.Stderr)
	}
	require.Contains(t, starter(t, environ, "chain", "chain-direct").Stdout, "guided by [masked: github token] [masked: FLEET_TOKEN]")
}

// historyOf returns the history of a chain with its payloads, as text.
func historyOf(t *testing.T, c client.Client, id string) string {
	t.Helper()
	var all strings.Builder
	events := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		encoded, err := proto.Marshal(event)
		require.NoError(t, err)
		all.Write(encoded)
	}
	return all.String()
}
