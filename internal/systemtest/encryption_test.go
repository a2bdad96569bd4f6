package systemtest

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/encryption"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// writeKeys writes a file of keys with these IDs. It returns the path of the file, and the setting for the file. The
// same ID always gets the same key.
func writeKeys(t *testing.T, ids ...string) (file, setting string) {
	t.Helper()
	var lines strings.Builder
	for _, id := range ids {
		lines.WriteString(id + " " + base64.StdEncoding.EncodeToString([]byte(id+strings.Repeat(".", 32-len(id)))) + "\n")
	}
	file = filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(file, []byte(lines.String()), 0o600))
	return file, "CLAUDEOPS_ENCRYPTION_KEYS_FILE=" + file
}

// dialAs connects to a server with the settings of environ, as worker and claudeops do.
func dialAs(t *testing.T, address string, environ []string) client.Client {
	t.Helper()
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	environ = append([]string{"TEMPORAL_ADDRESS=" + address, "TEMPORAL_CONFIG_FILE=" + filepath.Join(t.TempDir(), "none.toml")}, environ...)
	options, err := supervisor.ConnectionOptions(environ, cfg, quiet())
	require.NoError(t, err)
	c, err := supervisor.Connect(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// fullHistory returns the history of a chain's run as Temporal has stored it.
func (s *site) fullHistory(run client.WorkflowRun) *historypb.History {
	s.t.Helper()
	var history historypb.History
	events := s.client.GetWorkflowHistory(s.t.Context(), run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(s.t, err)
		history.Events = append(history.Events, event)
	}
	return &history
}

// replay replays a history with keys.
func replay(t *testing.T, history *historypb.History, keys *encryption.Keys) error {
	t.Helper()
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		DisableDeadlockDetection: true, DataConverter: encryption.NewConverter(keys),
	})
	require.NoError(t, err)
	replayer.RegisterWorkflowWithOptions(workflows.EscalationChain, workflow.RegisterOptions{Name: workflows.ChainWorkflow})
	original := workflow.Execution{ID: history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()}
	return replayer.ReplayWorkflowHistoryWithOptions(nil, history, worker.ReplayWorkflowHistoryOptions{OriginalExecution: original})
}

// tell runs two chains in which people and agents use text in every possible place, and returns their runs. One chain
// escalates to a gate, and a person answers the gate with an update. The other chain refuses its input.
func tell(t *testing.T, c client.Client, text string, more ...string) (*site, []client.WorkflowRun) {
	t.Helper()
	verdict := escalation.Verdict{
		Status: escalation.VerdictEscalate, Summary: text + " in the summary", Services: []string{text}, RecommendedTier: 2,
		Findings: text + " in the findings",
	}
	agents := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Conclude(verdict))))
	s := startSite(t, c, environment(t, agents, append(more, "CLAUDEOPS_GATE_TIMEOUT=72h")...))
	gated := s.startAs("gated", map[string]any{"prompt": text + " in the prompt", "services": []string{text}, "max_tier": 1})
	s.awaitGate("gated", "gate-1")
	_, err := s.resolve("gated", escalation.GateAnswer{
		GateID: "gate-1", Action: escalation.GateOverride, Actor: "ada", Guidance: text + " in the guidance",
	})
	require.NoError(t, err)
	chain, err := s.finish(gated)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeOverridden, chain.Outcome)
	require.Contains(t, chain.Sessions[0].Verdict.Summary, text, "who has the key reads everything")
	refused := s.startAs("refused", map[string]any{"prompt": text, "repository": text})
	_, err = s.finish(refused)
	require.ErrorContains(t, err, text)
	require.NoError(t, s.stop())
	return s, []client.WorkflowRun{gated, refused}
}

// stored runs the chains of tell on a new server. It returns the histories of the chains. It then stops the server, and
// also returns the content of the server's database.
func stored(t *testing.T, text string, more ...string) (runs []*historypb.History, database []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "temporal.db")
	server, err := embedded.Start(t.Context(), embedded.Options{NoUI: true, DatabaseFile: file, Logger: quiet()})
	require.NoError(t, err)
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			require.NoError(t, server.Stop())
		}
	})
	c := dialAs(t, server.Address(), environment(t, "claude", more...))
	require.NoError(t, supervisor.SetUpNamespace(t.Context(), c, client.DefaultNamespace))
	s, told := tell(t, c, text, more...)
	for _, run := range told {
		runs = append(runs, s.fullHistory(run))
	}
	stopped = true
	require.NoError(t, server.Stop())
	files, err := filepath.Glob(file + "*")
	require.NoError(t, err)
	for _, name := range files {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		database = append(database, content...)
	}
	return runs, database
}

// TestTemporalNeverSeesTexts searches the database of a real server for the texts of agents and people. Without
// encryption the search must find these texts. Then the test replays encrypted and unencrypted histories, also after a
// change of the key.
func TestTemporalNeverSeesTexts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	const told = "xylophone"
	plain, database := stored(t, told)
	for _, place := range []string{" in the prompt", " in the summary", " in the findings", " in the guidance"} {
		require.True(t, bytes.Contains(database, []byte(told+place)), place)
	}
	const hidden = "marimba"
	_, setting := writeKeys(t, "2026-11")
	encrypted, database := stored(t, hidden, setting)
	require.True(t, bytes.Contains(database, []byte(encryption.Encoding)))
	for _, history := range encrypted {
		for _, event := range history.GetEvents() {
			content, err := proto.Marshal(event)
			require.NoError(t, err)
			require.NotContains(t, string(content), hidden, "event %d, %s", event.GetEventId(), event.GetEventType())
		}
	}
	require.False(t, bytes.Contains(database, []byte(hidden)), "the database of Temporal has a text in clear")

	rotated, _ := writeKeys(t, "2027-05", "2026-11")
	keys, err := encryption.ReadKeys(rotated)
	require.NoError(t, err)
	for _, history := range append(plain, encrypted...) {
		require.NoError(t, replay(t, history, keys))
	}
	other, _ := writeKeys(t, "2027-05")
	keys, err = encryption.ReadKeys(other)
	require.NoError(t, err)
	require.ErrorContains(t, replay(t, encrypted[0], keys), `it is encrypted with key "2026-11", which is not in `+other)
	require.NoError(t, replay(t, plain[0], keys))
}

// TestChainWaitsForItsKey gives an encrypted chain to a worker without the key. The chain does not end. It continues
// when a worker has the key.
func TestChainWaitsForItsKey(t *testing.T) {
	t.Parallel()
	c := startTemporal(t)
	_, setting := writeKeys(t, "2026-11")
	agents := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Conclude(allWell()))))
	withKey := dialAs(t, sharedTemporal.server.Address(), environment(t, agents, setting))
	without := startSite(t, c, environment(t, agents))
	run, err := withKey.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "chain-" + nameOf(t), TaskQueue: without.cfg.Worker.TaskQueue,
	}, workflows.ChainWorkflow, workflows.ChainInput{Prompt: "look"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		for _, event := range without.fullHistory(run).GetEvents() {
			failure := event.GetWorkflowTaskFailedEventAttributes().GetFailure().GetMessage()
			if strings.Contains(failure, `it is encrypted with key "2026-11"; set CLAUDEOPS_ENCRYPTION_KEYS_FILE to a file with that key`) {
				return true
			}
		}
		return false
	}, testTimeout, 50*time.Millisecond)
	require.NoError(t, without.stop())
	s := startSite(t, withKey, environment(t, agents, setting))
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeHealthy, chain.Outcome)
}

// TestSweepReadsEncryptedHeartbeats terminates an encrypted chain while an agent works. The sweep must get the cost
// from the last heartbeat.
func TestSweepReadsEncryptedHeartbeats(t *testing.T) {
	t.Parallel()
	startTemporal(t)
	_, setting := writeKeys(t, "2026-11")
	agents := simtest.Install(t, claudesim.Play(claudesim.Always(
		claudesim.Bash("true").Using(claudesim.Usage{Input: 10_000}), claudesim.Bash("sleep 600"))))
	environ := environment(t, agents, append(toolsAllowed(), setting)...)
	s := startSite(t, dialAs(t, sharedTemporal.server.Address(), environ), environ)
	run := s.start(nil)
	require.Eventually(t, func() bool { return s.heartbeat(run.GetID()).Total().CostUSD > 0 }, testTimeout, 50*time.Millisecond)
	require.NoError(t, s.client.TerminateWorkflow(t.Context(), run.GetID(), run.GetRunID(), ""))
	records := s.records()
	require.Eventually(t, func() bool {
		sessions, err := records.Chain(t.Context(), run.GetID())
		return err == nil && len(sessions) == 1 && sessions[0].Status != escalation.SessionRunning && sessions[0].CostUSD > 0
	}, testTimeout, 50*time.Millisecond)
}
