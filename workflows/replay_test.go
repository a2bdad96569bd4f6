package workflows_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/workflows"
)

// TestReplay replays every recorded history. A failure means that chains which run now
// would break at the next deployment: put the change behind workflow.GetVersion. The
// histories come from `make histories`; those of a released shape are never replaced.
func TestReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "v*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "there are no recorded histories")
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			replayer := worker.NewWorkflowReplayer()
			replayer.RegisterWorkflowWithOptions(workflows.EscalationChain, workflow.RegisterOptions{Name: workflows.ChainWorkflow})
			require.NoError(t, replayer.ReplayWorkflowHistoryFromJSONFile(nil, file))
		})
	}
}
