package escalation_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

// TestHeartbeatTimeout checks that three heartbeats fit into half of the timeout, after which a worker stops its agent.
func TestHeartbeatTimeout(t *testing.T) {
	t.Parallel()
	for interval, timeout := range map[time.Duration]time.Duration{
		0: 30 * time.Second, time.Second: 30 * time.Second, 5 * time.Second: 30 * time.Second,
		8 * time.Second: 48 * time.Second, 10 * time.Second: time.Minute,
	} {
		policy := escalation.Policy{Heartbeat: escalation.Duration(interval)}
		require.Equal(t, timeout, policy.HeartbeatTimeout(), "%s", interval)
		require.GreaterOrEqual(t, policy.HeartbeatTimeout()/2, 3*policy.HeartbeatInterval())
	}
}

// TestOfSessionKeepsLimits checks that no field of the policy by which sessions are admitted and run gets lost on the
// way. A new field must be kept, too, or be listed here.
func TestOfSessionKeepsLimits(t *testing.T) {
	t.Parallel()
	hourly := escalation.Limit{Max: 1, Window: escalation.Duration(time.Hour)}
	whole := escalation.Policy{
		Tiers: make([]escalation.TierPolicy, 3), DryRun: true, ChainBudgetUSD: 1, DayBudgetUSD: 1, Cooldowns: escalation.Cooldowns{Restarts: hourly},
		EscalationLimit: hourly, TalksPerPerson: 1, Heartbeat: 1,
	}
	ofChains := []string{
		"OwnBudgetUSD", "MaxTier", "Continuity", "ResumeThreshold", "Notify", "Repositories", "ResumeMaxTokens", "Returns", "MaxParallelIssues", "Gate", "Review",
		"Author", "Encrypted",
	}
	all, kept := reflect.ValueOf(whole), reflect.ValueOf(whole.OfSession(1))
	for i := range all.NumField() {
		if name := all.Type().Field(i).Name; !slices.Contains(ofChains, name) {
			require.False(t, all.Field(i).IsZero(), "%s needs a value here", name)
			require.False(t, kept.Field(i).IsZero(), "%s gets lost", name)
		}
	}
	asked := escalation.AdmissionRequest{Purpose: escalation.PurposeTalk, Tier: 1, Actor: "ada"}
	admission := escalation.Admit(whole.OfSession(1), asked, escalation.AdmissionFacts{TalksOfActor: 1})
	require.Equal(t, escalation.RuleTalksOfPerson, admission.Rule)
}
