package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/embeddedtest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestInitLooks sets up a machine with a claude and no Temporal. Init runs Temporal for a dry run, and explains the
// verdict.
func TestInitLooks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	verdict := escalation.Verdict{
		Status: escalation.VerdictEscalate, Summary: "jellyfin answers 502", Services: []string{"jellyfin"},
		RecommendedTier: escalation.TierSafeRepair, Checks: []escalation.CheckResult{{Service: "jellyfin", CheckType: "http", Status: escalation.CheckDown}},
	}
	bin := t.TempDir()
	_, err := claudesim.Install(bin, claudesim.Play(claudesim.On(claudesim.Match{Model: "haiku"},
		claudesim.Bash("uptime").Saying("Looking."), claudesim.Conclude(verdict)).Named("look")))
	require.NoError(t, err)
	home := t.TempDir()
	environ := []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + home, "ANTHROPIC_API_KEY=sk-ant-x", simtest.WorkersUser}

	mediaStarter := clitest.Starter{Execute: execute, Clock: chaintest.Clock, Machine: clitest.MediaHost(1000).Machine}.Run
	got := mediaStarter(t, environ, "init", "--yes", "--max-tier", "2")
	require.Equal(t, program.ExitOK, got.Code, got.Stdout+got.Stderr)
	require.Empty(t, embeddedtest.WithoutStalls(got.Stderr))
	for _, want := range []string{
		"No Temporal runs here yet.", "✓ temporal ", "\n$ claudeops schedule create looks --every 1h --jitter 5m --dry-run\nCreated schedule looks",
		"\n$ claudeops run --wait --dry-run --id init-", "Tier 1 found something to repair: jellyfin answers 502\n",
		"Tier 2 would have been allowed to restart jellyfin, for at most $2.50, and each service at most 2 times in 4h.\n", "The look cost $",
		"  claudeops up\n", "  claudeops schedule update looks --dry-run=false\n",
	} {
		require.Contains(t, got.Stdout, want)
	}
	again := mediaStarter(t, environ, "init", "--yes", "--hours", "7-22", "--no-dry-run")
	require.Equal(t, program.ExitOK, again.Code, again.Stderr)
	require.Contains(t, again.Stdout, "claudeops schedule create looks --every 1h --hours 7-22 --timezone ", "no Temporal runs")

	looks := mediaStarter(t, environ, "init", "--yes", "--hours", "7-22")
	require.Equal(t, program.ExitOK, looks.Code, looks.Stderr)
	require.Contains(t, looks.Stdout, "\n$ claudeops schedule update looks --every 1h --hours 7-22 --timezone ")
	require.Contains(t, looks.Stdout, "0 7-21 * * *")
	kept := mediaStarter(t, environ, "init", "--yes")
	require.Equal(t, program.ExitOK, kept.Code, kept.Stderr)
	require.NotContains(t, kept.Stdout, "claudeops schedule update looks --every", "nobody has said that it should change")
	require.NotContains(t, kept.Stdout, "claudeops schedule create")
}
