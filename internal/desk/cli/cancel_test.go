package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestCancel cancels a chain during a tool call. It also checks the error for a chain that has ended and for an
// unknown ID.
func TestCancel(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "started")
	environ := startInstallation(t, claudesim.Play(claudesim.Always(claudesim.Bash("echo > "+marker+"; sleep 300"))),
		"CLAUDEOPS_TIER1_TOOLS=Bash")
	require.Equal(t, program.ExitOK, starter(t, environ, "run", "--id", "unwanted").Code)
	require.Eventually(t, func() bool { _, err := os.Stat(marker); return err == nil }, clitest.Timeout, clitest.Look)

	asked := starter(t, environ, "cancel", "unwanted")
	require.Equal(t, program.ExitOK, asked.Code, asked.Stderr)
	require.Equal(t, "Asked chain unwanted to end: its agent is stopped, and it ends aborted. See it with: claudeops chain unwanted\n", asked.Stdout)
	followed := starter(t, environ, "watch", "unwanted")
	require.Equal(t, console.ExitNeedsPerson, followed.Code, followed.Stderr)
	require.Contains(t, followed.Stdout, "Outcome: aborted")

	for id, want := range map[string]string{
		"unwanted": "claudeops: chain unwanted: it has ended, and there is nothing to cancel\n",
		"nobody":   "claudeops: chain nobody: no such chain; `claudeops chains` lists them\n",
	} {
		refused := starter(t, environ, "cancel", id)
		require.Equal(t, program.ExitFailure, refused.Code)
		require.Equal(t, want, refused.Stderr)
	}
}
