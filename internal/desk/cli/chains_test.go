package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/cli/operate"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestChainsOrder checks the order that the help promises: running chains are listed before ended ones. Then it replays
// and moves chains that this program cannot continue.
func TestChainsOrder(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	s.plays(t, "at-gate", scene{Chain: chaintest.Waiting(chaintest.OpenedGate())}, scene{Chain: chaintest.Overridden(chaintest.OpenedGate())})
	ended := scene{Chain: escalation.Chain{Outcome: escalation.OutcomeHealthy}}
	s.plays(t, "first", ended)
	s.plays(t, "second", ended)
	var ids []string
	require.Eventually(t, func() bool {
		var rows []operations.Row
		listed := starter(t, s.environ, "chains", "-o", "json")
		if listed.Code != program.ExitOK || json.Unmarshal([]byte(listed.Stdout), &rows) != nil {
			return false
		}
		ids = nil
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		return len(rows) == 3 && rows[0].Gate == operations.OpenGate && !rows[1].EndedAt.IsZero() && !rows[2].EndedAt.IsZero()
	}, clitest.Timeout, clitest.Look)
	require.Equal(t, []string{"at-gate", "second", "first"}, ids)
	require.Regexp(t, `at-gate +waits for a person `, starter(t, s.environ, "chains", "--limit", "1").Stdout)

	// These chains do not have the history of a real chain.
	replayed := starter(t, s.environ, "replay")
	require.Equal(t, program.ExitFailure, replayed.Code)
	require.Equal(t, "claudeops: 1 of 1 histories cannot be replayed\n", replayed.Stderr)
	require.Contains(t, replayed.Stdout, "Chain at-gate: ")
	require.Contains(t, replayed.Stdout, ". Keep a worker of its version running until it has ended.\n")
	var result operate.Replayed
	replayed = starter(t, s.environ, "replay", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(replayed.Stdout), &result))
	require.Equal(t, 1, result.Replayed)
	require.Equal(t, "at-gate", result.Failed[0].ChainID)
	none := starter(t, s.environ, "replay", "--query", "WorkflowId = 'nobody'")
	require.Equal(t, program.ExitOK, none.Code, none.Stderr)
	require.Equal(t, "No chains run.\n", none.Stdout)

	moved := starter(t, append(s.environ, "CLAUDEOPS_DEPLOYMENT=ops", "CLAUDEOPS_BUILD_ID=v2"), "chains", "move", "at-gate", "nobody", "first")
	require.Equal(t, program.ExitFailure, moved.Code)
	require.Equal(t, "claudeops: 3 of 3 chains were not moved\n", moved.Stderr)
	require.Equal(t, "Chain at-gate was not moved: it belongs to no version: workers without versions began it, and they or the current version continue it\n"+
		"Chain nobody was not moved: no such chain; `claudeops chains` lists them\nChain first was not moved: it has ended\n", moved.Stdout)
}
