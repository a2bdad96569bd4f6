package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/chaintest"
	"github.com/claudeops/claudeops/internal/cli/operate"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/operations"
	"github.com/claudeops/claudeops/internal/program"
)

// TestChainsOrder checks the order that the help promises: running chains are listed before ended ones. Then it replays and
// moves chains that this program cannot continue.
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
		if listed.code != program.ExitOK || json.Unmarshal([]byte(listed.stdout), &rows) != nil {
			return false
		}
		ids = nil
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		return len(rows) == 3 && rows[0].Gate == operations.OpenGate && !rows[1].EndedAt.IsZero() && !rows[2].EndedAt.IsZero()
	}, screenTimeout, screenLook)
	require.Equal(t, []string{"at-gate", "second", "first"}, ids)
	require.Regexp(t, `at-gate +waits for a person `, starter(t, s.environ, "chains", "--limit", "1").stdout)

	// These chains do not have the history of a real chain.
	replayed := starter(t, s.environ, "replay")
	require.Equal(t, program.ExitFailure, replayed.code)
	require.Equal(t, "starter: 1 of 1 histories cannot be replayed\n", replayed.stderr)
	require.Contains(t, replayed.stdout, "Chain at-gate: ")
	require.Contains(t, replayed.stdout, ". Keep a worker of its version running until it has ended.\n")
	var result operate.Replayed
	replayed = starter(t, s.environ, "replay", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(replayed.stdout), &result))
	require.Equal(t, 1, result.Replayed)
	require.Equal(t, "at-gate", result.Failed[0].ChainID)
	none := starter(t, s.environ, "replay", "--query", "WorkflowId = 'nobody'")
	require.Equal(t, program.ExitOK, none.code, none.stderr)
	require.Equal(t, "No chains run.\n", none.stdout)

	moved := starter(t, append(s.environ, "CLAUDEOPS_DEPLOYMENT=ops", "CLAUDEOPS_BUILD_ID=v2"), "chains", "move", "at-gate", "nobody", "first")
	require.Equal(t, program.ExitFailure, moved.code)
	require.Equal(t, "starter: 3 of 3 chains were not moved\n", moved.stderr)
	require.Equal(t, "Chain at-gate was not moved: it belongs to no version: workers without versions began it, and they or the current version continue it\n"+
		"Chain nobody was not moved: no such chain\nChain first was not moved: it has ended\n", moved.stdout)
}
