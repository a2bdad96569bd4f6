package checkout_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/change/checkout"
)

// TestShow lays out two phases on a host that has made neither.
func TestShow(t *testing.T) {
	t.Parallel()
	a := newStage(t).repository()
	b := a.otherHost()
	place := a.enter(a.session("run"))
	a.write("worktrees/run/first", "approved\n")
	a.commit(place.Worktree.Guarded.Top, "first phase")
	a.write("worktrees/run/sub/config", "changed\n")
	a.write("worktrees/run/uncommitted", "x\n")
	a.git(place.Worktree.Guarded.Top, "commit", "--quiet", "--all", "--message", "second phase")
	from := a.checkpoint(place)
	a.leave(place)

	before := b.git(b.work, "status", "--porcelain", "--ignored")
	parent := t.TempDir()
	dir, err := b.keeper().Show(t.Context(), b.work, from, parent)
	require.NoError(t, err)
	require.Equal(t, parent, filepath.Dir(dir))
	for name, content := range map[string]string{"first": "approved\n", "sub/config": "changed\n"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, content, string(text))
	}
	require.NoFileExists(t, filepath.Join(dir, "uncommitted"))
	require.NoFileExists(t, filepath.Join(dir, ".git"), "it is no worktree")
	require.Equal(t, before, b.git(b.work, "status", "--porcelain", "--ignored"), "the shared directory and its index stay")
}

// TestShowRefuses checks what is not laid out.
func TestShowRefuses(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	_, err := s.keeper().Show(t.Context(), s.work, checkout.Checkpoint{Commit: "1111111111111111111111111111111111111111"}, t.TempDir())
	require.ErrorContains(t, err, "this host does not have the commit 1111111111111111111111111111111111111111")

	large := filepath.Join(s.work, "large")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, 257<<20))
	s.commit(s.work, "a large file")
	head := checkout.Checkpoint{Commit: s.git(s.work, "rev-parse", "HEAD")}
	parent := t.TempDir()
	_, err = s.keeper().Show(t.Context(), s.work, head, parent)
	require.EqualError(t, err, "its files have 257 MiB together, more than 256")
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Empty(t, left)
}
