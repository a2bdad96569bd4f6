package daily

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestLineageShowsCalls shows a session by its number, and checks that the calls of its ancestors and descendants are
// shown.
func TestLineageShowsCalls(t *testing.T) {
	t.Parallel()
	environ := clitest.Environment(t)
	records := clitest.OpenRecords(t, environ)
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
	require.Equal(t, program.ExitOK, shown.Code, shown.Stderr)
	require.Contains(t, shown.Stdout, "\n│       calls: 1 allowed, 0 denied\n└── Session #2 ")
	require.Regexp(t, `\n        calls: 0 allowed, 1 denied\n        denied   [-0-9]+ [:0-9]+ UTC  Bash  docker restart web — no\n`, shown.Stdout)
	require.NotContains(t, shown.Stdout, "docker ps")
	require.Contains(t, starter(t, environ, "chain", "1", "--calls").Stdout, "  Bash  docker ps\n")

	var found operations.Lineage
	require.NoError(t, json.Unmarshal([]byte(starter(t, environ, "chain", "2", "-o", "json").Stdout), &found))
	require.Len(t, found.Calls, 2)
	require.Equal(t, "child", found.Calls[1].SessionID)
}
