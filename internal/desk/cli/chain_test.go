package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestTerminatedChain shows a chain that was terminated during a tool call.
func TestTerminatedChain(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "started")
	environ := startInstallation(t, claudesim.Play(claudesim.Always(claudesim.Bash("echo > "+marker+"; sleep 300"))),
		"CLAUDEOPS_TIER1_TOOLS=Bash")
	b := scheduleBench{t: t, environ: environ}
	b.must("run", "--id", "terminated")
	require.Eventually(t, func() bool { _, err := os.Stat(marker); return err == nil }, clitest.Timeout, clitest.Look)
	require.Eventually(t, func() bool {
		return regexp.MustCompile(`haiku {2}about \$0\.\d{4} .*… running`).MatchString(starter(t, environ, "chain", "terminated").Stdout)
	}, clitest.Timeout, clitest.Look, "no heartbeat tells what it has cost")
	require.NoError(t, b.client().TerminateWorkflow(t.Context(), "terminated", "", "by the test"))
	var shown string
	require.Eventually(t, func() bool {
		shown = starter(t, environ, "chain", "terminated").Stdout
		return strings.Contains(shown, "✗ failed")
	}, clitest.Timeout, clitest.Look)
	require.Regexp(t, `Session #1  Tier 1  haiku  about \$0\.\d{4} `, shown)
	require.NotContains(t, shown, "running")
}
