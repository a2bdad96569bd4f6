package systemtest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// update makes the tests record the histories that package workflows replays: see `make histories`.
var update = flag.Bool("update", false, "record histories into workflows/testdata")

// recordHistory stores the history of a run under the name of a branch of the chain, if -update is set.
func recordHistory(t *testing.T, s *site, run client.WorkflowRun, branch string) {
	t.Helper()
	if !*update {
		return
	}
	var history historypb.History
	events := s.client.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		history.Events = append(history.Events, event)
	}
	encoded, err := protojson.MarshalOptions{Multiline: true, Indent: " "}.Marshal(&history)
	require.NoError(t, err)
	file := filepath.Join(simtest.ModuleRoot(t), "workflows", "testdata", branch+".json")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, append(encoded, '\n'), 0o600))
}
