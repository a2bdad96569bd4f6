package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/workflows"
)

// TestCloseTellsChains checks that a waiting chain is informed who closed its incident. It also checks that the output
// names a chain that has ended.
func TestCloseTellsChains(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	clitest.RecordIncidents(t, s.environ)
	s.plays(t, "chain-second", scene{}, scene{})
	closed := atNoon(t, s.environ, "incidents", "close", "1", "--actor", "ada", "--reason", "replaced the disk")
	require.Equal(t, program.ExitOK, closed.Code, closed.Stderr)
	require.Empty(t, closed.Stderr)
	require.Contains(t, closed.Stdout, "\nIt was told that the incident is closed.\n")
	var signal workflows.IncidentSignal
	history := s.client.GetWorkflowHistory(t.Context(), "chain-second", "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(t, err)
		if signalled := event.GetWorkflowExecutionSignaledEventAttributes(); signalled != nil {
			require.Equal(t, workflows.IncidentSignalName, signalled.GetSignalName())
			require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(signalled.GetInput(), &signal))
		}
	}
	require.Equal(t, workflows.IncidentSignal{
		IncidentID: "incident-1", Status: escalation.IncidentGone, Note: "replaced the disk", Actor: "ada",
	}, signal)

	gone := atNoon(t, s.environ, "incidents", "close", "4", "--actor", "ada", "-o", "json")
	require.Equal(t, program.ExitOK, gone.Code)
	require.Equal(t, "claudeops: chain chain-mail could not be told: no such chain; `claudeops chains` lists them\n", gone.Stderr)
	require.NotContains(t, gone.Stdout, `"told"`)
}
