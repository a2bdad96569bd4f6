package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cli/chainclient"
	"github.com/claudeops/claudeops/internal/cli/chaintest"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/program"
)

// TestChainsOrder checks the order that the help promises: running chains are listed before ended ones.
func TestChainsOrder(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	s.plays(t, "at-gate", scene{Chain: chaintest.Waiting(chaintest.OpenedGate())}, scene{Chain: chaintest.Overridden(chaintest.OpenedGate())})
	ended := scene{Chain: escalation.Chain{Outcome: escalation.OutcomeHealthy}}
	s.plays(t, "first", ended)
	s.plays(t, "second", ended)
	var ids []string
	require.Eventually(t, func() bool {
		var rows []chainclient.Row
		listed := starter(t, s.environ, "chains", "-o", "json")
		if listed.code != program.ExitOK || json.Unmarshal([]byte(listed.stdout), &rows) != nil {
			return false
		}
		ids = nil
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		return len(rows) == 3 && rows[0].Gate == chainclient.OpenGate && !rows[1].EndedAt.IsZero() && !rows[2].EndedAt.IsZero()
	}, screenTimeout, screenLook)
	require.Equal(t, []string{"at-gate", "second", "first"}, ids)
	require.Regexp(t, `at-gate +waits for a person `, starter(t, s.environ, "chains", "--limit", "1").stdout)
}
