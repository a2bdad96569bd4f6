package workflows_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
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
			replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
				DisableDeadlockDetection: true, // it takes a machine that is busy for a workflow that blocks
			})
			require.NoError(t, err)
			replayer.RegisterWorkflowWithOptions(workflows.EscalationChain, workflow.RegisterOptions{Name: workflows.ChainWorkflow})
			replayer.RegisterWorkflowWithOptions(workflows.Cycle, workflow.RegisterOptions{Name: workflows.CycleWorkflow})
			// Under its own ID, from which a workflow may make those of others.
			history := readHistory(t, file)
			original := workflow.Execution{ID: history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()}
			require.NotEmpty(t, original.ID)
			require.NoError(t, replayer.ReplayWorkflowHistoryWithOptions(nil, history, worker.ReplayWorkflowHistoryOptions{OriginalExecution: original}))
		})
	}
}

func readHistory(t *testing.T, file string) *historypb.History {
	t.Helper()
	opened, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, opened.Close()) }()
	history, err := client.HistoryFromJSON(opened, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return history
}
