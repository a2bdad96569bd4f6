package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// TestTerminatedChain looks at a chain that was terminated in the middle of a tool call.
func TestTerminatedChain(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "started")
	environ := startInstallation(t, claudesim.Play(claudesim.Always(claudesim.Bash("echo > "+marker+"; sleep 300"))),
		"CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_TIER1_ALLOWED_TOOLS=Bash")
	b := scheduleBench{t: t, environ: environ}
	b.must("run", "--id", "terminated")
	require.Eventually(t, func() bool { _, err := os.Stat(marker); return err == nil }, time.Minute, 50*time.Millisecond)
	time.Sleep(2 * time.Second) // a heartbeat tells what it has cost
	require.Contains(t, b.must("chain", "terminated").stdout, "… running")
	require.NoError(t, b.client().TerminateWorkflow(t.Context(), "terminated", "", "by the test"))
	var shown string
	require.Eventually(t, func() bool {
		shown = starter(t, environ, "chain", "terminated").stdout
		return strings.Contains(shown, "✗ failed")
	}, time.Minute, 250*time.Millisecond)
	require.Regexp(t, `Session #1  Tier 1  haiku  about \$0\.\d{4} `, shown)
	require.NotContains(t, shown, "running")
}
