package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/prompts"
)

func TestPersona(t *testing.T) {
	t.Parallel()
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "text.md")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	environ := []string{"HOME=" + t.TempDir()}
	cfg, err := Load(append(environ, "CLAUDEOPS_IDENTITY_FILE="+file("You are Bubba.\n"), "CLAUDEOPS_USER_FILE="+file("Ada.")))
	require.NoError(t, err)
	require.Equal(t, prompts.Persona{Identity: "You are Bubba.", User: "Ada."}, cfg.Talk.Persona)
	for want, setting := range map[string]string{
		"4001 characters, and at most 4000": "CLAUDEOPS_IDENTITY_FILE=" + file(strings.Repeat("x", 4_001)),
		"more than 8000 characters":         "CLAUDEOPS_SOUL_FILE=" + file(strings.Repeat("x", 8_001)),
		"no such file":                      "CLAUDEOPS_USER_FILE=/nonexistent",
		"be an absolute path":               "CLAUDEOPS_SOUL_FILE=soul.md",
	} {
		_, err := Load(append(environ, setting))
		require.ErrorContains(t, err, want)
	}
}

func TestTalkPolicy(t *testing.T) {
	t.Parallel()
	cfg, err := Load([]string{"HOME=" + t.TempDir(), "CLAUDEOPS_TALK_MODEL=haiku", "CLAUDEOPS_TALK_BUDGET_USD=0.2", "CLAUDEOPS_DAY_BUDGET_USD=7"})
	require.NoError(t, err)
	policy, tier1 := cfg.TalkPolicy(), cfg.Policy().For(escalation.TierObserve)
	own := policy.For(escalation.TierObserve)
	require.Equal(t, "haiku", own.Model)
	require.Equal(t, tier1.Tools, own.Tools)
	require.Equal(t, tier1.MaxTurns, own.MaxTurns)
	require.InDelta(t, 0.2, own.BudgetUSD, 1e-9)
	require.InDelta(t, 7, policy.DayBudgetUSD, 1e-9)
	require.Zero(t, policy.ChainBudgetUSD, "a conversation has no end")
	require.Equal(t, escalation.TierObserve, policy.MaxTier)
}
