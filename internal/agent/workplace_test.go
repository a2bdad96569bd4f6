package agent

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/change/checkout"
	"github.com/claudeops/claudeops/internal/plant/config"
)

// TestWhoMayCommit checks who is kept from committing: whoever has no worktree, if commits are reviewed, and an author
// always.
func TestWhoMayCommit(t *testing.T) {
	t.Parallel()
	policy, err := config.Guard{}.LoadPolicy()
	require.NoError(t, err)
	shared, tree := &checkout.Place{Shared: "it sets filter.evil.smudge"}, &checkout.Place{Worktree: &checkout.Worktree{}}
	author := activities.AgentRun{Repairs: true, Authoring: &activities.Authoring{}}
	for name, c := range map[string]struct {
		at   workplace
		run  activities.AgentRun
		want string
	}{
		"a worktree":                 {workplace{tree, "/w", workplaces{reviewed: true}}, activities.AgentRun{Repairs: true}, ""},
		"no reviews":                 {workplace{shared, "/w", workplaces{}}, activities.AgentRun{Repairs: true}, ""},
		"no worktree":                {workplace{shared, "/w", workplaces{reviewed: true}}, activities.AgentRun{Repairs: true}, "it sets filter.evil.smudge"},
		"an author":                  {workplace{shared, "/w", workplaces{}}, author, "it sets filter.evil.smudge"},
		"the directory for sessions": {workplace{nil, "/w", workplaces{reviewed: true}}, activities.AgentRun{Repairs: true}, "it works in the directory that all sessions share"},
		"a look":                     {workplace{nil, "/w", workplaces{reviewed: true}}, activities.AgentRun{}, "it repairs nothing"},
	} {
		require.Equal(t, c.want, c.at.missing(c.run), name)
		decision := guard.New(c.at.policyOf(policy, c.run), guard.Host{}).Decide(guard.Call{
			Tier: 3, Tool: "Bash", Input: []byte(`{"command":"git commit -m x"}`), Place: guard.Place{Work: []string{t.TempDir()}, Path: []string{"/usr/bin"}},
		})
		if c.want == "" {
			require.NotContains(t, decision.Reason, "has no worktree", name)
			continue
		}
		require.Contains(t, decision.Reason, "this session has no worktree ("+c.want+")", name)
	}
}

// TestNameOfACommitter checks that git gets a name, because the account of agents may have none.
func TestNameOfACommitter(t *testing.T) {
	t.Parallel()
	spec := cell.Spec{Env: map[string]string{}}
	workplace{&checkout.Place{Worktree: &checkout.Worktree{}}, "/w", workplaces{}}.adjust(&spec)
	require.Equal(t, map[string]string{
		"EMAIL": "claudeops@localhost", "GIT_AUTHOR_NAME": "claudeops", "GIT_COMMITTER_NAME": "claudeops",
	}, spec.Env)
}
