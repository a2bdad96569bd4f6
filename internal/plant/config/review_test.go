package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

func TestRolesOfTheDefaults(t *testing.T) {
	t.Parallel()
	policy := load(t).Policy()
	require.Equal(t, escalation.TierSafeRepair, policy.AuthorTier())
	require.Empty(t, policy.ForbidsAuthors())
	author, reviewer := policy.OfAuthor().For(escalation.TierSafeRepair), policy.OfReviewer().For(escalation.TierObserve)
	require.Equal(t, policy.For(escalation.TierSafeRepair).Tools, author.Tools)
	require.Equal(t, policy.For(escalation.TierObserve).Tools, reviewer.Tools)
	require.Equal(t, policy.For(escalation.TierFullRepair), policy.OfAuthor().For(escalation.TierFullRepair))
	require.Equal(t, policy, policy.OfPurpose(escalation.PurposeContinuation))
}

func TestRolesAsConfigured(t *testing.T) {
	t.Parallel()
	role := escalation.TierPolicy{
		Model: "opus", ContextWindow: 200_000, Timeout: escalation.Duration(2 * time.Hour), BudgetUSD: 3.5,
	}
	for name, of := range map[string]struct {
		purpose escalation.Purpose
		tier    escalation.Tier
	}{
		"AUTHOR": {escalation.PurposeAuthor, escalation.TierFullRepair}, "REVIEWER": {escalation.PurposeReview, escalation.TierObserve},
	} {
		policy := load(t, "CLAUDEOPS_AUTHOR_TIER=3", "CLAUDEOPS_TIER1_TOOLS=Read", "CLAUDEOPS_TIER3_TOOLS=Read,Edit",
			Prefix+name+"_MODEL=opus", Prefix+name+"_TIMEOUT=2h", Prefix+name+"_BUDGET_USD=3.5").Policy()
		want := role
		if of.purpose == escalation.PurposeReview {
			want.ContextWindow = 0 // a review is never resumed, except by a person
		}
		want.Tools = policy.For(of.tier).Tools
		require.Equal(t, want, policy.OfPurpose(of.purpose).For(of.tier), name)
		require.Equal(t, want, policy.OfPurpose(of.purpose).OfSession(of.tier).For(of.tier), name)
		require.NotEqual(t, want.Model, policy.For(escalation.TierSafeRepair).Model)
		require.NotEqual(t, want.BudgetUSD, policy.For(of.tier).BudgetUSD, "the tier keeps its own limits")
	}
}

func TestRolesThatCannotBe(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"AUTHOR_TIER=1":        "it must be 2 or 3, because tier 1 changes nothing",
		"AUTHOR_MODEL=-p":      "it must be the name of a model",
		"AUTHOR_TIMEOUT=0s":    "it must be longer than nothing",
		"AUTHOR_BUDGET_USD=-1": "it must be 0 (no cap) or more",
	} {
		problems := problemsOf(t, Prefix+setting)
		require.NotEmpty(t, problems, setting)
		require.Contains(t, problems[0].Sentence, want, setting)
	}
}

func TestAuthorsThatMayNotRun(t *testing.T) {
	t.Parallel()
	require.Contains(t, load(t, "CLAUDEOPS_MAX_TIER=1").Policy().ForbidsAuthors(), "tier 1 is the highest that may run")
	require.Contains(t, load(t, "CLAUDEOPS_DRY_RUN=true").Policy().ForbidsAuthors(), "dry run")
	require.Empty(t, load(t, "CLAUDEOPS_MAX_TIER=3", "CLAUDEOPS_AUTHOR_TIER=3").Policy().ForbidsAuthors())
}
