package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestGatesOfARealChain watches a chain whose agent asks for a person. It answers the first gate on the screen of
// `watch`, and the second with `gate`.
func TestGatesOfARealChain(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	claude, err := claudesim.Install(t.TempDir(), claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "leave the lock alone"}, claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictNeedsHuman, Summary: "the lock is still there",
		})),
		claudesim.On(claudesim.Match{Prompt: "remove the lock"}, claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictResolved, Summary: "the lock is gone",
		})),
		claudesim.Always(claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictNeedsHuman, Summary: "may the lock be removed?"}))))
	require.NoError(t, err)
	environ := startInstalled(t, claude, "CLAUDEOPS_GATE_TIMEOUT=1h")
	started := starter(t, environ, "run", "--id", "chain-real")
	require.Equal(t, program.ExitOK, started.Code, started.Stderr)

	shown := onScreen(t, environ, 100, 50, "watch", "chain-real", "--actor", "ada")
	shown.Sees("gate-1 of chain chain-real")
	shown.Sees("Your answer (c, f, l, o, q)")
	shown.Types("c: leave the lock alone\r")
	shown.Sees("gate-2 of chain chain-real")
	stale := starter(t, environ, "gate", "chain-real", "--gate", "gate-1", "--action", "f")
	require.Equal(t, program.ExitUsage, stale.Code)
	require.Contains(t, stale.Stderr, "the gate that is open is gate-2, not gate-1")
	require.Eventually(t, func() bool {
		listed := starter(t, environ, "gate")
		return listed.Code == program.ExitOK && strings.Contains(listed.Stdout, "chain-real")
	}, clitest.Timeout, clitest.Look, "the gate is not listed")
	answered := starter(t, environ, "gate", "chain-real", "--action", "fix", "--guidance", "remove the lock", "--actor", "grace")
	require.Equal(t, program.ExitOK, answered.Code, answered.Stderr)
	t.Logf("told: %s", answered.Stdout)
	require.Equal(t, program.ExitOK, shown.Ends(), shown.Text())
	shown.Sees("Outcome: resolved")
	tree := starter(t, environ, "chain", "chain-real").Stdout
	require.Contains(t, tree, "ada answered continue at ")
	require.Contains(t, tree, "grace answered fix at ")
	require.Contains(t, tree, ": remove the lock\n")
	t.Log("\n" + tree)
}
