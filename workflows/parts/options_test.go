package parts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
)

// TestTimeoutsOfSessions checks that the time-out of each kind of session, at its default and at its largest value, is
// what Temporal gives the activity that runs the session, with time for its start and its end.
func TestTimeoutsOfSessions(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(config.Config) (escalation.Policy, escalation.Tier){
		"TIER1_TIMEOUT":    func(c config.Config) (escalation.Policy, escalation.Tier) { return c.Policy(), 1 },
		"TIER2_TIMEOUT":    func(c config.Config) (escalation.Policy, escalation.Tier) { return c.Policy(), 2 },
		"TIER3_TIMEOUT":    func(c config.Config) (escalation.Policy, escalation.Tier) { return c.Policy(), 3 },
		"REVIEWER_TIMEOUT": func(c config.Config) (escalation.Policy, escalation.Tier) { return c.Policy().OfReviewer(), 1 },
		"AUTHOR_TIMEOUT": func(c config.Config) (escalation.Policy, escalation.Tier) {
			return c.Policy().OfAuthor(), c.Policy().AuthorTier()
		},
		"TALK_TIMEOUT": func(c config.Config) (escalation.Policy, escalation.Tier) { return c.TalkPolicy(), 1 },
	}
	for name, of := range kinds {
		for _, value := range []string{"", "17m", "87600h"} {
			t.Run(name+"="+value, func(t *testing.T) {
				t.Parallel()
				cfg, err := config.Load([]string{"HOME=" + t.TempDir(), "CLAUDEOPS_" + name + "=" + value})
				require.NoError(t, err)
				policy, tier := of(cfg)
				want := policy.For(tier).Timeout.Std()
				if value != "" {
					want, err = time.ParseDuration(value)
					require.NoError(t, err)
				}
				var suite testsuite.WorkflowTestSuite
				env := suite.NewTestWorkflowEnvironment()
				env.ExecuteWorkflow(func(ctx workflow.Context) (time.Duration, error) {
					return workflow.GetActivityOptions(WithTier(ctx, policy, tier, "")).StartToCloseTimeout, nil
				})
				var got time.Duration
				require.NoError(t, env.GetWorkflowResult(&got))
				require.Greater(t, got, want)
				require.Less(t, got, want+time.Hour)
			})
		}
	}
}
