package setup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestPolicySuggest takes the suggestions for denied calls as a policy, with which the calls pass.
func TestPolicySuggest(t *testing.T) {
	t.Parallel()
	environ := clitest.Environment(t)
	none := starter(t, environ, "policy", "suggest")
	require.Equal(t, program.ExitFailure, none.Code)
	require.Contains(t, none.Stderr, "there are no records: ")

	records := clitest.OpenRecords(t, environ)
	empty := starter(t, environ, "policy", "suggest")
	require.Equal(t, "# 0 calls were denied. There is nothing to suggest.\n", empty.Stdout)
	var denied []escalation.CallDecision
	commands := []string{"docker stop jellyfin", "poolctl status tank", "rm -rf /", "poolctl status backup", "ls a; docker kill web"}
	for i, command := range commands {
		call := chaintest.Bash("session", i, command, "it is not granted")
		call.ChainID, call.Tier, call.Allowed, call.At = "chain-1", escalation.TierSafeRepair, false, time.Now()
		denied = append(denied, call)
	}
	require.NoError(t, records.AppendDecisions(t.Context(), denied))
	require.NoError(t, records.AppendEvents(t.Context(), []escalation.Event{{
		ChainID: "chain-1", Key: "end", Kind: escalation.EventChainEnded, At: time.Now(), Message: "chain ended needs_human after 2 sessions for $0.20",
	}}))

	got := starter(t, environ, "policy", "suggest")
	require.Equal(t, program.ExitOK, got.Code, got.Stderr)
	var lines []string
	for line := range strings.Lines(got.Stdout) {
		before, after, found := strings.Cut(line, ", last at ")
		if _, example, cut := strings.Cut(after, ": "); found && cut {
			line = before + ": " + example
		}
		lines = append(lines, line)
	}
	require.Equal(t, `# Suggested for 5 denied calls. Remove what you do not accept.
version: 1
extends: default
programs:
  docker:
    # docker kill: denied in 1 call at Tier 2: docker kill web
    # Instead: chain ended needs_human after 2 sessions for $0.20 (chain-1)
    # Risk: Tier 2 and higher act on any service this way; each time counts against the service's limit of restarts.
    - {commands: {kill: {tier: 2, args: "SERVICE+", action: restart}}}
    # docker stop: denied in 1 call at Tier 2: docker stop jellyfin
    # Instead: chain ended needs_human after 2 sessions for $0.20 (chain-1)
    # Risk: Tier 2 and higher act on any service this way; each time counts against the service's limit of restarts.
    - {commands: {stop: {tier: 2, args: "SERVICE+", action: restart}}}
  poolctl:
    # poolctl status: denied in 2 calls at Tier 2: poolctl status tank
    # Instead: chain ended needs_human after 2 sessions for $0.20 (chain-1)
    # Risk: The guard knows nothing of poolctl, and does not see what it does inside the sandbox.
    - {commands: {status: {tier: 2, args: "/backup|tank/"}}}
    # or wider: {commands: {status: {tier: 2, args: "NAME"}}}
`, strings.Join(lines, ""))

	policy := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(policy, []byte(got.Stdout), 0o600))
	with := slices.Concat(environ, []string{"CLAUDEOPS_POLICY_FILE=" + policy})
	for _, command := range commands {
		checked := starter(t, with, "policy", "check", "--tier", "2", command)
		require.Equal(t, strings.HasPrefix(command, "rm"), checked.Code != program.ExitOK, "%s %s", command, checked.Stdout)
	}
	require.Contains(t, starter(t, with, "policy", "suggest").Stdout, "There is nothing to suggest.")

	var rows []struct {
		What    string
		Times   int
		Section []string
	}
	require.NoError(t, json.Unmarshal([]byte(starter(t, environ, "policy", "suggest", "--since", "24h", "-o", "json").Stdout), &rows))
	require.Len(t, rows, 3)
	require.Equal(t, 2, rows[0].Times)
	require.Equal(t, []string{"programs", "poolctl"}, rows[0].Section)
	require.Equal(t, program.ExitUsage, starter(t, environ, "policy", "suggest", "--since", "-1h").Code)
}
