package cli

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/chaintest"
	"github.com/claudeops/claudeops/internal/cli/daily"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/operations"
	"github.com/claudeops/claudeops/internal/program"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// openRecords opens the records of environ for a test.
func openRecords(t *testing.T, environ []string) *store.Store {
	t.Helper()
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	records, err := supervisor.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	return records
}

// requireCalls records a denied call for an ended chain and checks that `chain` shows it.
func requireCalls(t *testing.T, environ []string, chain escalation.Chain) {
	t.Helper()
	var before daily.Chain
	require.NoError(t, json.Unmarshal([]byte(starter(t, environ, "chain", chain.ID, "-o", "json").stdout), &before))
	require.Equal(t, chain.Outcome, before.Outcome, "the fields of the chain stay where they were")
	denied := chaintest.Bash(chain.Sessions[0].SessionID, 1, "rm -r /srv", "nothing is to be removed")
	denied.ChainID = chain.ID
	require.NoError(t, openRecords(t, environ).AppendDecisions(t.Context(), []escalation.CallDecision{denied}))

	for _, args := range [][]string{{"chain", chain.ID}, {"chain", fmt.Sprint(chain.Sessions[0].ID)}} {
		require.Regexp(t, `└── Session .*\n(?:        .*\n)?        calls: \d+ allowed, 1 denied\n        denied   .*  Bash  rm -r /srv — nothing is to be removed\n`,
			starter(t, environ, args...).stdout)
		var view daily.Chain
		require.NoError(t, json.Unmarshal([]byte(starter(t, environ, append(args, "-o", "json")...).stdout), &view))
		require.Equal(t, denied, view.Calls[len(view.Calls)-1])
	}
}

// TestLineageShowsCalls shows a session by its number, and checks that the calls of its ancestors and descendants are
// shown.
func TestLineageShowsCalls(t *testing.T) {
	t.Parallel()
	environ := bareEnvironment(t)
	records := openRecords(t, environ)
	var parent int64
	for i, id := range []string{"parent", "child"} {
		opened, err := records.OpenSession(t.Context(), escalation.Session{
			ParentID: parent, ChainID: "chain-42", SessionID: id, Tier: escalation.Tier(i + 1), Model: "haiku", StartedAt: chaintest.Noon,
		}, escalation.AdmissionRequest{}, escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)})
		require.NoError(t, err)
		parent = opened.Session.ID
	}
	require.NoError(t, records.AppendDecisions(t.Context(), []escalation.CallDecision{
		chaintest.Bash("parent", 1, "docker ps", ""), chaintest.Bash("of another line", 2, "ls", ""), chaintest.Bash("child", 3, "docker restart web", "no"),
	}))

	shown := starter(t, environ, "chain", "1")
	require.Equal(t, program.ExitOK, shown.code, shown.stderr)
	require.Contains(t, shown.stdout, "\n│       calls: 1 allowed, 0 denied\n└── Session #2 ")
	require.Regexp(t, `\n        calls: 0 allowed, 1 denied\n        denied   [-0-9]+ [:0-9]+  Bash  docker restart web — no\n`, shown.stdout)
	require.NotContains(t, shown.stdout, "docker ps")
	require.Contains(t, starter(t, environ, "chain", "1", "--calls").stdout, "  Bash  docker ps\n")

	var found operations.Lineage
	require.NoError(t, json.Unmarshal([]byte(starter(t, environ, "chain", "2", "-o", "json").stdout), &found))
	require.Len(t, found.Calls, 2)
	require.Equal(t, "child", found.Calls[1].SessionID)
}
