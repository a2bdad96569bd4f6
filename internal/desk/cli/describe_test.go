package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/workflows"
)

// TestOddWorkflows checks the errors for a chain with truncated input, a foreign workflow, and a chain without a
// worker.
func TestOddWorkflows(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	cutOff := converter.NewRawValue(&commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: []byte(`{"start_tier":2,`),
	})
	for id, options := range map[string]struct{ kind, queue string }{
		"cut-off": {workflows.ChainWorkflow, stageQueue}, "theirs": {"Backup", "theirs"}, "waits": {workflows.ChainWorkflow, "nobody"},
	} {
		_, err := s.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: options.queue}, options.kind, cutOff)
		require.NoError(t, err)
	}
	for command, want := range map[string]string{
		"chain cut-off": "it failed: its input is not valid JSON: unexpected end of JSON input\n",
		"gate cut-off":  "it failed: its input is not valid JSON: unexpected end of JSON input\n",
		"watch cut-off": "its input is not valid JSON: unexpected end of JSON input\n",
		"chain theirs":  "it is no chain, but a workflow of type Backup\n",
		"watch theirs":  "it is no chain, but a workflow of type Backup\n",
		"cancel theirs": "it is no chain, but a workflow of type Backup\n",
		"chain waits":   "no worker answered within 1s; is one running on task queue nobody?\n",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(command)
			patience := clitest.Timeout
			if args[1] == "waits" {
				patience = clitest.NobodysPatience
			}
			got := clitest.Starter{Execute: execute, Patience: patience}.Run(t, s.environ, args...)
			require.Equal(t, program.ExitFailure, got.Code, got.Stdout)
			require.Equal(t, "claudeops: chain "+args[1]+": "+want, got.Stderr)
		})
	}
}
