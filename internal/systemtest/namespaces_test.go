package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestTwoTemporalsShareRecords repairs a service on one Temporal server. Meanwhile a worker of another server uses the
// same state directory, and runs chains with the same ID. That worker must neither close the session nor take the
// service.
func TestTwoTemporalsShareRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repairing, finish := filepath.Join(dir, "repairing"), filepath.Join(dir, "finish")
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Model: "sonnet"},
			claudesim.Bash(fmt.Sprintf("touch %s; until [ -e %s ]; do sleep 0.05; done", repairing, finish)), claudesim.Conclude(resolved())),
		claudesim.Always(claudesim.Conclude(allWell()))))
	environ := environment(t, claude, "CLAUDEOPS_TIER2_TOOLS=Bash")
	first := startSite(t, startTemporal(t), environ)
	repair := map[string]any{"start_tier": 2, "services": []string{"jellyfin"}}
	repaired := first.startAs("nightly", repair)
	require.Eventually(t, exists(repairing), testTimeout, 50*time.Millisecond)

	otherTemporal, _ := startTemporalAt(t)
	second := startSite(t, otherTemporal, environ)
	looked, err := second.finish(second.startAs("nightly", nil)) // a worker sweeps before it takes work
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeHealthy, looked.Outcome, looked.Reason)
	records := first.records()
	for c, want := range map[client.Client]escalation.SessionStatus{
		first.client: escalation.SessionRunning, otherTemporal: escalation.SessionCompleted,
	} {
		namespace, err := supervisor.FindNamespace(t.Context(), c, client.DefaultNamespace)
		require.NoError(t, err)
		sessions, err := records.In(namespace).Chain(t.Context(), "nightly")
		require.NoError(t, err)
		require.Len(t, sessions, 1)
		require.Equal(t, want, sessions[0].Status)
		require.Equal(t, 1, sessions[0].Sequence)
		require.Equal(t, namespace.ID, sessions[0].NamespaceID)
	}

	waiting := second.startAs("nightly", repair)
	wait := second.awaitWait("nightly").Wait
	require.Equal(t, escalation.RuleServiceBusy, wait.Rule)
	require.Contains(t, wait.Reason, "chain nightly of another Temporal namespace (default) is at it")
	require.NoError(t, otherTemporal.CancelWorkflow(t.Context(), waiting.GetID(), waiting.GetRunID()))
	_, err = second.finish(waiting)
	require.True(t, temporal.IsCanceledError(err), "got %v", err)
	locks, err := records.ServiceLocks(t.Context())
	require.NoError(t, err)
	require.Len(t, locks, 1, "the cancelled chain has released none but its own")

	require.NoError(t, os.WriteFile(finish, nil, 0o600))
	chain, err := first.finish(repaired)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Equal(t, "default", chain.Last().Namespace)
}
