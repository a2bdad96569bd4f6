package supervisor_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/escalation"
)

// TestStartSettlesAbandonedRecords starts a worker on records that hold an open session of
// a terminated chain, of an unknown one, and of one that still runs.
func TestStartSettlesAbandonedRecords(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	marker := filepath.Join(t.TempDir(), "started")
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "ended before its work was done"}, claudesim.Conclude(allWell())),
		claudesim.Always(claudesim.Bash("echo >> "+marker+"; sleep 300"))))
	environ := environment(t, claude, "CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_TIER1_ALLOWED_TOOLS=Bash", "CLAUDEOPS_DRAIN_TIMEOUT=1s")
	first := startSite(t, temporalServer, environ)
	terminated, running := first.startAs("terminated", nil), first.startAs("running", nil)
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(marker)
		return err == nil && len(data) == 2
	}, testTimeout, 50*time.Millisecond, "both must be in their tool call")
	_, err := first.records().OpenSession(t.Context(), escalation.Session{
		ChainID: "unknown", SessionID: "0d9c7e0f-8b8e-4d53-9f0e-4f2b7c1e7a11", StartedAt: time.Now(), Tier: 1,
	})
	require.NoError(t, err)
	require.NoError(t, first.stop())
	require.NoError(t, temporalServer.TerminateWorkflow(t.Context(), terminated.GetID(), terminated.GetRunID(), "by the test"))

	second := startSite(t, temporalServer, environ)
	chain, err := second.finish(running)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeHealthy, chain.Outcome)
	for chainID, want := range map[string]string{
		"terminated": "its chain ended without closing it: terminated", "unknown": "its chain is unknown to Temporal",
	} {
		sessions, err := second.records().Chain(t.Context(), chainID)
		require.NoError(t, err)
		require.Len(t, sessions, 1)
		require.Equal(t, escalation.SessionFailed, sessions[0].Status)
		require.Equal(t, want, sessions[0].Error)
		require.True(t, sessions[0].CostEstimated)
		require.False(t, sessions[0].EndedAt.IsZero())
	}
}
