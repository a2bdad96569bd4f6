package systemtest

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestFaultWorkerRestarted kills a worker in a tool call that has taken effect. The next worker must report the lost
// activity to Temporal. Otherwise Temporal would notice it only at the time-out.
func TestFaultWorkerRestarted(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	f := newFaultSite(t, c, 1, "TEMPORAL_ADDRESS="+address)
	const id = lingeringChain + "chain"
	end := f.begin(t, id)
	worker := startRole(t, "worker", nil, f.environ...)
	require.Eventually(t, exists(filepath.Join(f.effects, id)), testTimeout, 5*time.Millisecond)
	worker.kill(t)
	startRole(t, "worker", nil, f.environ...)
	chain := end()
	require.Contains(t, failedAttempts(t, f.site, f.client.GetWorkflow(t.Context(), chain.ID, "")), "the worker died")
	launches := simtest.Launches(t, f.claude)
	require.Len(t, launches, 3, "Tier 1, Tier 2 and Tier 2 again")
	require.Contains(t, launches[2].Stdin, startedAgain)
}
