//go:build linux

package agent

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claude"
	"github.com/claudeops/claudeops/internal/transcripts"
)

// TestConversationsOfAnotherUser checks that a conversation is restored with the rights of the agents' user. It also
// checks that a link is not followed if an agent has put it at the path of the conversation.
func TestConversationsOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only the superuser changes users")
	}
	home, err := os.MkdirTemp("", "agent-test-") //nolint:usetesting // below t.TempDir another user sees nothing
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(home)) })
	require.NoError(t, os.Chmod(home, 0o755)) //nolint:gosec // for another user
	own, secret := filepath.Join(home, "agent"), filepath.Join(home, "secret")
	user := &claude.User{Name: "daemon", UID: 1, GID: 1}
	require.NoError(t, os.Mkdir(own, 0o700))
	require.NoError(t, os.Chown(own, user.UID, user.GID))
	require.NoError(t, os.WriteFile(secret, []byte("{\"type\":\"user\",\"secret\":true}\n"), 0o600))
	archive, err := transcripts.Open(t.Context(), "file://"+filepath.Join(home, "archive"))
	require.NoError(t, err)
	defer func() { require.NoError(t, archive.Close()) }()
	session, path := uuid.NewString(), filepath.Join(own, "projects", "work", "t.jsonl")
	as := func(fn func() error) error { return claude.AsUser(user, fn) }
	open := func() *transcripts.Copy {
		local, err := archive.Copy(session, path)
		require.NoError(t, err)
		local.As(as)
		return local
	}

	require.NoError(t, as(func() error { return os.MkdirAll(filepath.Dir(path), 0o700) }))
	require.NoError(t, as(func() error { return os.Symlink(secret, path) }))
	_, err = open().Save(t.Context())
	require.ErrorIs(t, err, os.ErrPermission, "the link leads to a file that is not the agents'")

	require.NoError(t, os.Remove(path))
	require.NoError(t, as(func() error { return os.WriteFile(path, []byte("{\"type\":\"user\"}\n"), 0o600) }))
	saved, err := open().Save(t.Context())
	require.NoError(t, err)
	require.True(t, saved)

	require.NoError(t, os.Remove(path))
	_, err = open().Restore(t.Context())
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, user.UID, info.Sys().(*syscall.Stat_t).Uid, "the CLI goes on writing it")

	elsewhere := filepath.Join(home, "elsewhere")
	require.NoError(t, os.Mkdir(elsewhere, 0o755)) //nolint:gosec // for another user
	require.NoError(t, os.RemoveAll(filepath.Dir(path)))
	require.NoError(t, as(func() error { return os.Symlink(elsewhere, filepath.Dir(path)) }))
	_, err = open().Restore(t.Context())
	require.ErrorIs(t, err, os.ErrPermission, "the link leads to a directory that is not the agents'")
}
