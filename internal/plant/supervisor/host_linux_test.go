package supervisor_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
)

// ownEtc is a variable that tells TestUserIsCreated that it has an /etc of its own.
const ownEtc = "AGENT_TEST_OWN_ETC"

// TestUserIsCreated lets a worker of root create the agents' user. It does so in a mount namespace with a copy of /etc
// that lacks the user.
func TestUserIsCreated(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only the superuser creates users")
	}
	if os.Getenv(ownEtc) == "" {
		self, err := os.Executable()
		require.NoError(t, err)
		again := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-euc",
			`cp -a /etc/. "$1"; cd "$1"; sed -i /^claudeops-agent:/d passwd shadow group gshadow; mount --bind "$1" /etc; exec "$2" -test.run '^TestUserIsCreated$' -test.v`, "sh", t.TempDir(), self)
		again.Env = append(os.Environ(), ownEtc+"=1")
		output, err := again.CombinedOutput()
		require.NoError(t, err, "%s", output)
		require.Contains(t, string(output), "--- PASS: TestUserIsCreated")
		return
	}
	environ := []string{"HOME=" + t.TempDir()}
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	require.Equal(t, config.DefaultAgentUser, cfg.Claude.AgentUser)
	require.Nil(t, cfg.Claude.Account)
	require.False(t, supervisor.RootAlone(cfg))

	cfg, created, err := supervisor.EnsureUser(t.Context(), cfg)
	require.NoError(t, err)
	require.True(t, created)
	require.NotZero(t, cfg.Claude.Account.UID)
	require.NoError(t, cfg.MakeDirs())

	late, err := config.Load(environ)
	require.NoError(t, err)
	require.Equal(t, cfg.Claude.Account, late.Claude.Account)
	late.Claude.Account = nil // as if another worker had been faster
	late, created, err = supervisor.EnsureUser(t.Context(), late)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, cfg.Claude.Account, late.Claude.Account)
}
