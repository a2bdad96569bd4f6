package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// TestChosenModels checks that the models of an input reach the records and the agents. The context window of such a
// model is unknown until the CLI reports it.
func TestChosenModels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictResolved, 0.4))
	result, err := w.run(t, workflows.ChainInput{Models: map[escalation.Tier]string{1: "haiku", 2: "claude-special"}})
	require.NoError(t, err)
	require.Equal(t, "haiku", result.Sessions[0].Model)
	require.Equal(t, "claude-special", result.Sessions[1].Model)
	require.Equal(t, 200_000, w.ran[0].Policy.For(escalation.TierObserve).ContextWindow)
	require.Zero(t, w.ran[1].Policy.For(escalation.TierSafeRepair).ContextWindow)
	require.Equal(t, escalation.TierPolicy{}, w.ran[1].Policy.Tiers[2], "Temporal stores nothing that the session does not need")
}

func TestChosenRepository(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		choice, want, problem string
	}{
		"the usual one":    {"", "", ""},
		"by its path":      {"/srv/infra", "/srv/infra", ""},
		"with a slash":     {"/srv/infra/", "/srv/infra", ""},
		"by its last part": {"infra", "/srv/infra", ""},
		"unknown":          {"/etc", "", `repository "/etc" is none that CLAUDEOPS_REPOSITORIES lists for the workers`},
		"inside of one":    {"/srv/infra/roles", "", "is none that"},
		"around one":       {"/srv", "", "is none that"},
		"out of one":       {"/srv/infra/../../etc", "", "is none that"},
		"ambiguous":        {"web", "", `repository "web" is the name of 2 directories: give the path of one`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, concludes(escalation.VerdictHealthy, 0.03))
			w.policy.Repositories = []string{"/srv/infra", "/srv/web", "/opt/web"}
			result, err := w.run(t, workflows.ChainInput{Repository: tt.choice})
			if tt.problem != "" {
				require.ErrorContains(t, err, tt.problem)
				require.Empty(t, w.ran, "no agent runs")
				return
			}
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeHealthy, result.Outcome)
			require.Equal(t, tt.want, w.ran[0].Directory)
		})
	}
}
