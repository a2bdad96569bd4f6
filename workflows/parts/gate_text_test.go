package parts

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

func TestGateCommandsTakeAnyID(t *testing.T) {
	t.Parallel()
	gate := escalation.Gate{ID: "gate-1", Options: []escalation.GateAction{escalation.GateFix}}
	for id, want := range map[string][2]string{
		"chain-1":     {"chain-1", "chain-1"},
		"x; rm -rf ~": {"'x; rm -rf ~'", "'x; rm -rf ~'"},
		"it's":        {`'it'\''s'`, `'it'\''s'`},
		"-q":          {"-- -q", "-q"}, // temporal uses whatever follows --workflow-id as its value
	} {
		require.Equal(t, "claudeops gate --action fix --guidance '...' --actor NAME "+want[0], starterCommand(gate, id))
		require.Contains(t, temporalCommand(gate, id), " --workflow-id "+want[1]+" --name resolve-gate ")
	}
}
