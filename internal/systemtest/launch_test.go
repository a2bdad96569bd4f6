package systemtest

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestLaunchCarriesTheConfiguration checks that settings reach the arguments and the environment of a CLI that
// resumes a conversation.
func TestLaunchCarriesTheConfiguration(t *testing.T) {
	t.Parallel()
	claude := simtest.Install(t, claudesim.Play(concluding("haiku", asksFor(2)), concluding("special-sonnet", resolved())))
	s := startSite(t, startTemporal(t), environment(t, claude,
		"CLAUDEOPS_ENVIRONMENT=a NAS and two Raspberries", "CLAUDEOPS_PASS_ENV=SITE_NAME=claude,GH_TOKEN", "SITE_NAME=home", "GH_TOKEN=secret", "OTHER=secret",
		"CLAUDEOPS_TIER2_MODEL=special-sonnet", "CLAUDEOPS_TIER2_BUDGET_USD=1.5", "CLAUDEOPS_TIER2_TOOLS=Bash", "CLAUDEOPS_API_RETRIES=2"))
	chain, err := s.finish(s.start(map[string]any{"services": []string{"jellyfin"}, "prompt": "be quick"}))
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome)

	launches := simtest.Launches(t, claude)
	require.Len(t, launches, 2)
	second := launches[1]
	for flag, want := range map[string]string{
		"--model": "special-sonnet", "--max-budget-usd": "1.5", "--tools": "Bash",
		"--permission-mode":      "dontAsk",
		"--append-system-prompt": "a NAS and two Raspberries",
		"--resume":               chain.Sessions[0].SessionID, "--session-id": chain.Sessions[1].SessionID,
	} {
		at := slices.Index(second.Args, flag)
		require.GreaterOrEqual(t, at, 0, "%s is missing from %q", flag, second.Args)
		require.Equal(t, want, second.Args[at+1], flag)
	}
	require.NotContains(t, second.Args, "--dangerously-skip-permissions")
	require.Equal(t, "home", second.Env["SITE_NAME"])
	require.NotContains(t, second.Env, "OTHER")
	require.NotContains(t, second.Env, "GH_TOKEN", "only gh gets it")
	require.Equal(t, "2", second.Env["CLAUDE_CODE_MAX_RETRIES"])
	require.Equal(t, chain.Sessions[1].SessionID, second.Env["CLAUDEOPS_SESSION_ID"])
	require.Equal(t, chain.ID, second.Env["CLAUDEOPS_CHAIN_ID"])
	require.Equal(t, s.cfg.Claude.WorkDir, second.Dir)
	require.Equal(t, filepath.Join(second.Dir, activities.ChainsDir, activities.ChainDirName(chain.ID)), second.Env["CLAUDEOPS_CHAIN_DIR"])
	require.Contains(t, launches[0].Stdin, "jellyfin")
	require.Contains(t, launches[0].Stdin, "be quick")
}
