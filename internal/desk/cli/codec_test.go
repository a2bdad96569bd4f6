package cli

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestEncryptedInstallation uses claudeops on a server with encrypted chains, with the key and without it.
func TestEncryptedInstallation(t *testing.T) {
	t.Parallel()
	setting, _ := clitest.EncryptionKeys(t)
	environ := startInstallation(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "take your time"},
			claudesim.Bash("true").Using(claudesim.Usage{Input: 1_000_000}), claudesim.Bash("sleep 600")),
		claudesim.Always(claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "the tide is low"}))),
		setting, "CLAUDEOPS_TIER1_TOOLS=Bash")
	ran := starter(t, environ, "run", "--id", "one", "--service", "harbour", "--wait")
	require.Equal(t, program.ExitOK, ran.Code, ran.Stderr)
	require.Contains(t, ran.Stdout, "tier 1 found everything healthy")
	require.Contains(t, starter(t, environ, "chain", "one", "-o", "json").Stdout, "the tide is low")

	created := starter(t, environ, "schedule", "create", "tides", "--every", "24h", "--prompt", "look at the tide", "--actor", "ada")
	require.Equal(t, program.ExitOK, created.Code, created.Stderr)
	shown := starter(t, environ, "schedule", "describe", "tides", "-o", "json")
	require.Contains(t, shown.Stdout, "look at the tide")
	require.Contains(t, shown.Stdout, "ada")

	require.Equal(t, program.ExitOK, starter(t, environ, "run", "--id", "slow", "--prompt", "take your time").Code)
	require.Eventually(t, func() bool { // a heartbeat tells the cost
		got := starter(t, environ, "chain", "slow")
		return got.Code == program.ExitOK && strings.Contains(got.Stdout, "running") && regexp.MustCompile(`\$0\.[1-9]|\$[1-9]`).MatchString(got.Stdout)
	}, clitest.Timeout, clitest.Look)
	replayed := starter(t, environ, "replay")
	require.Equal(t, program.ExitOK, replayed.Code, replayed.Stdout+replayed.Stderr)
	without := slices.DeleteFunc(slices.Clone(environ), func(variable string) bool { return variable == setting })
	require.Equal(t, program.ExitFailure, starter(t, without, "replay").Code, "it cannot be decoded")
	require.Equal(t, program.ExitOK, starter(t, environ, "cancel", "slow").Code)

	listed := starter(t, environ, "chains", "--service", "harbour")
	require.Equal(t, program.ExitUsage, listed.Code)
	require.Contains(t, listed.Stderr, "--service finds nothing while CLAUDEOPS_ENCRYPTION_KEYS_FILE is set")
	all := starter(t, environ, "chains", "-o", "json")
	require.Contains(t, all.Stdout, `"one"`)
	require.NotContains(t, all.Stdout, "harbour")

	refused := starter(t, without, "chain", "one")
	require.Equal(t, program.ExitFailure, refused.Code)
	require.Contains(t, refused.Stderr, `it is encrypted with key "2026-11"; set CLAUDEOPS_ENCRYPTION_KEYS_FILE to a file with that key`)
}
