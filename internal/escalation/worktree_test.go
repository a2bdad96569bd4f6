package escalation

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWorktreeDescribesWhatIsLeft(t *testing.T) {
	t.Parallel()
	const kept = "the worktree /worktrees/1 on nas is kept, with "
	const end = "; nothing of it is in /srv/infra until a person merges it"
	for want, tree := range map[string]*Worktree{
		"": {Commits: 1},
		kept + "1 commit on the branch claudeops/1" + end:                                     {Kept: true, Commits: 1},
		kept + "2 commits on the branch claudeops/1 and changes that are not committed" + end: {Kept: true, Commits: 2, Changed: true},
		kept + "work that could not be looked at (git status: no)" + end:                      {Kept: true, Problem: "git status: no"},
	} {
		tree.Path, tree.Branch, tree.Origin = "/worktrees/1", "claudeops/1", "/srv/infra"
		require.Equal(t, want, tree.Describe("nas"))
	}
	require.Empty(t, (*Worktree)(nil).Describe("nas"))
	require.Contains(t, (&Worktree{Path: "/worktrees/1", Kept: true}).Describe(""), "the worktree /worktrees/1 is kept, with ")
}

func TestReportKeepsTheLastWorktree(t *testing.T) {
	t.Parallel()
	first, second := Report{Worktree: &Worktree{Kept: true}}, Report{Worktree: &Worktree{}}
	require.Same(t, second.Worktree, first.Then(second).Worktree)
	require.Same(t, first.Worktree, first.Then(Report{}).Worktree)
}
