package systemtest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// TestTwoTemporalsShareNoRecords starts a worker of another Temporal server on the records of an installation. It
// refuses them, and takes them after they were released.
func TestTwoTemporalsShareNoRecords(t *testing.T) {
	t.Parallel()
	environ := environment(t, simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Conclude(allWell())))))
	first := startSite(t, startTemporal(t), environ)
	_, err := first.finish(first.startAs("nightly-of-two", nil))
	require.NoError(t, err)
	require.NoError(t, first.stop())

	otherTemporal, _ := startTemporalAt(t)
	second, err := supervisor.New(t.Context(), first.cfg, supervisor.Environment{Environ: environ, Host: "host-2", Logger: quiet()})
	require.NoError(t, err)
	err = second.Run(t.Context(), otherTemporal, client.DefaultNamespace)
	require.ErrorIs(t, err, store.ErrForeign)
	require.ErrorContains(t, err, "claudeops db release")

	records := first.records()
	require.ErrorIs(t, records.Release(t.Context(), time.Now()), store.ErrConflict, "a worker has just run")
	require.NoError(t, records.Release(t.Context(), time.Now().Add(time.Hour)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- second.Run(ctx, otherTemporal, client.DefaultNamespace) }()
	run, err := otherTemporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: "nightly-of-two", TaskQueue: first.cfg.Worker.TaskQueue,
	}, workflows.ChainWorkflow, nil)
	require.NoError(t, err)
	var looked workflows.ChainResult
	require.NoError(t, run.Get(ctx, &looked))
	sessions, err := records.Chain(t.Context(), "nightly-of-two")
	require.NoError(t, err)
	require.Len(t, sessions, 2)
	require.Equal(t, 2, sessions[1].Sequence)
	require.NotEqual(t, sessions[0].FirstRunID, sessions[1].FirstRunID)
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, second.Close())
}
