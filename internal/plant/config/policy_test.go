package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/guard"
)

func TestLoadPolicy(t *testing.T) {
	t.Parallel()
	builtIn, err := load(t).Guard.LoadPolicy()
	require.NoError(t, err)
	require.Contains(t, builtIn.Programs, "docker")

	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\ntiers: {1: {}, 2: {}, 3: {}}\nprograms: {cat: {tier: 1}}\n"), 0o600))
	own, err := load(t, "CLAUDEOPS_POLICY_FILE="+file).Guard.LoadPolicy()
	require.NoError(t, err)
	require.Contains(t, own.Programs, "cat")
	require.NotContains(t, own.Programs, "docker")

	require.NoError(t, os.Remove(file))
	_, err = Guard{PolicyFile: file}.LoadPolicy()
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestRequiredReviewForbidsProposals checks that agents of no tier can propose what no review has approved.
func TestRequiredReviewForbidsProposals(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	place := guard.Place{Work: []string{work}, Path: filepath.SplitList(os.Getenv("PATH"))}
	require.NoError(t, os.MkdirAll(filepath.Join(work, ".git"), 0o700))
	reason := func(mode string, tier int, command string) string {
		policy, err := load(t, "CLAUDEOPS_REVIEW_CHANGES="+mode).Guard.LoadPolicy()
		require.NoError(t, err)
		input, err := json.Marshal(map[string]string{"command": command})
		require.NoError(t, err)
		return guard.New(policy, guard.Host{}).Decide(guard.Call{Tier: tier, Tool: "Bash", Input: input, Place: place}).Reason
	}
	const ours = "the supervisor pushes what a review has approved"
	for _, command := range []string{
		"git push", "git push origin HEAD", "git -C . push origin x", "git push --dry-run", "true && git push", "gh pr create --fill", "gh pr new", "gh pr merge 3",
		"glab mr create", "tea pr create", "gh api repos/a/b/pulls -f title=x", "gh api -XPOST repos/a/b/pulls --input x",
		"glab api --meth=POST projects/1/merge_requests", "gh api --hostname x -F a=b repos/a/b/pulls",
	} {
		for _, tier := range []int{2, 3} {
			require.Contains(t, reason("required", tier, command), ours, "%d: %s", tier, command)
			require.NotContains(t, reason("advisory", tier, command), ours)
		}
	}
	for _, command := range []string{"git commit -m 'a push'", "git status", "gh pr list", "git log --oneline", "gh api repos/a/b/pulls"} {
		require.NotContains(t, reason("required", 2, command), ours, command)
	}
}

// TestWithoutCommits checks that a session without a worktree neither commits nor moves a branch, at any tier, and is
// told why.
func TestWithoutCommits(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	place := guard.Place{Work: []string{work}, Path: filepath.SplitList(os.Getenv("PATH"))}
	require.NoError(t, os.MkdirAll(filepath.Join(work, ".git"), 0o700))
	policy, err := Guard{}.LoadPolicy()
	require.NoError(t, err)
	reason := func(policy *guard.Policy, tier int, command string) string {
		input, err := json.Marshal(map[string]string{"command": command})
		require.NoError(t, err)
		return guard.New(policy, guard.Host{}).Decide(guard.Call{Tier: tier, Tool: "Bash", Input: input, Place: place}).Reason
	}
	const why = "this session has no worktree (worktrees are off)"
	without := policy.WithoutCommits("worktrees are off")
	for _, command := range []string{
		"git commit -m x", "git -C . commit -am x", "git -c user.name=x commit", "true && git commit -m x", "env git commit -m x", "sudo git commit -m x",
		"sh -c 'git commit -m x'", "git merge x", "git rebase main", "git cherry-pick x", "git revert HEAD", "git am x.patch", "git commit-tree x",
		"git update-ref refs/heads/main x", "git symbolic-ref HEAD refs/heads/x", "git push", "git pull", "git reset --hard x", "git fast-import",
		"git fetch . x:main", "git branch -f main x", "git branch -D x", "git checkout -B main x", "/usr/lib/git-core/git-commit -m x",
		"xargs git commit -m x", "git --git-dir=x/.git commit -m x", "git notes add -m x", "git filter-branch x",
	} {
		require.Contains(t, reason(without, 3, command), why, command)
		require.NotContains(t, reason(policy, 3, command), why, command)
	}
	for _, command := range []string{
		"git commit -m x", "git push origin x", "git pull --ff-only",
	} {
		require.Contains(t, reason(without, 2, command), why, command)
	}
	for _, command := range []string{"git status", "git log --oneline", "git diff HEAD~", "git branch -a", "git add -A", "git fetch --all", "git show HEAD"} {
		require.NotContains(t, reason(without, 2, command), why, command)
	}
}

// BenchmarkLoadPolicy measures the loading of the built-in policy. Every process that starts a guard does this once.
func BenchmarkLoadPolicy(b *testing.B) {
	for b.Loop() {
		if _, err := (Guard{}).LoadPolicy(); err != nil {
			b.Fatal(err)
		}
	}
}
