package checkout_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/change/checkout"
)

// TestAWorktreeOfAnotherUser runs git as another user. If that user may write in the repository, the session gets a
// worktree. If not, it gets the shared directory.
func TestAWorktreeOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only the superuser changes users")
	}
	user := &process.User{Name: "daemon", UID: 1, GID: 1}
	root, err := os.MkdirTemp("", "checkout-test-") //nolint:usetesting // below t.TempDir another user sees nothing
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	require.NoError(t, os.Chmod(root, 0o755)) //nolint:gosec // for another user
	s := &stage{t: t, root: root, work: filepath.Join(root, "work")}
	for _, dir := range []string{"work", "worktrees"} {
		require.NoError(t, os.Mkdir(filepath.Join(root, dir), 0o755)) //nolint:gosec // for another user
	}
	require.NoError(t, os.Chown(filepath.Join(root, "worktrees"), user.UID, user.GID))
	s.repository()
	enter := func() *checkout.Place {
		options := s.options()
		options.User = user
		keeper, err := checkout.New(options)
		require.NoError(t, err)
		place, err := keeper.Enter(t.Context(), s.session("chain"), func(string) {})
		require.NoError(t, err)
		return place
	}
	place := enter()
	require.Nil(t, place.Worktree)
	require.Contains(t, place.Shared, "permission denied")
	s.leave(place)

	// The directory itself still belongs to root. By default, git would refuse such a directory.
	output, err := exec.CommandContext(t.Context(), "chown", "-R", "1:1", filepath.Join(s.work, ".git")).CombinedOutput()
	require.NoError(t, err, string(output))
	place = enter()
	require.NotNil(t, place.Worktree, place.Shared)
	info, err := os.Stat(filepath.Join(place.Directory, "compose.yaml"))
	require.NoError(t, err)
	require.EqualValues(t, user.UID, info.Sys().(*syscall.Stat_t).Uid)
	require.Equal(t, checkout.Left{}, s.leave(place))
	require.NoDirExists(t, place.Directory)
}
