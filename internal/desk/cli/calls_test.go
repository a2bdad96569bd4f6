package cli

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/cli/daily"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// requireCalls records a denied call for an ended chain and checks that `chain` shows it.
func requireCalls(t *testing.T, environ []string, chain escalation.Chain) {
	t.Helper()
	var before daily.Chain
	require.NoError(t, json.Unmarshal([]byte(starter(t, environ, "chain", chain.ID, "-o", "json").Stdout), &before))
	require.Equal(t, chain.Outcome, before.Outcome, "the fields of the chain stay where they were")
	denied := chaintest.Bash(chain.Sessions[0].SessionID, 1, "rm -r /srv", "nothing is to be removed")
	denied.ChainID = chain.ID
	require.NoError(t, clitest.OpenRecords(t, environ).AppendDecisions(t.Context(), []escalation.CallDecision{denied}))

	for _, args := range [][]string{{"chain", chain.ID}, {"chain", fmt.Sprint(chain.Sessions[0].ID)}} {
		require.Regexp(t, `└── Session .*\n(?:        .*\n)?        calls: \d+ allowed, 1 denied\n        denied   .*  Bash  rm -r /srv — nothing is to be removed\n`,
			starter(t, environ, args...).Stdout)
		var view daily.Chain
		require.NoError(t, json.Unmarshal([]byte(starter(t, environ, append(args, "-o", "json")...).Stdout), &view))
		require.Equal(t, denied, view.Calls[len(view.Calls)-1])
	}
}
