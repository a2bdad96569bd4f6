package supervisor

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestRequiredLevels checks which settings refuse agents with the worker's user.
func TestRequiredLevels(t *testing.T) {
	t.Parallel()
	root := os.Geteuid() == 0
	for choice, refuses := range map[config.Sandbox]bool{
		config.SandboxOff: false, config.SandboxAuto: false, config.SandboxRequireKernel: false,
		config.SandboxRequire: root, config.SandboxRequireFull: true,
	} {
		cfg := config.Config{Claude: config.Claude{Sandbox: choice}}
		err := CheckLevel(cfg)
		require.Equal(t, refuses, err != nil, choice)
		if refuses {
			require.ErrorContains(t, err, "CLAUDEOPS_AGENT_USER")
		}
		cfg.Claude.AgentUser = "daemon"
		require.NoError(t, CheckLevel(cfg))
		require.False(t, RootAlone(cfg))
	}
	require.Equal(t, root, RootAlone(config.Config{}))
}

// TestHiddenFiles checks which of the configured files agents cannot see.
func TestHiddenFiles(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load([]string{
		"HOME=" + t.TempDir(), simtest.WorkersUser, "CLAUDEOPS_STATE_DIR=/var/lib/claudeops", "CLAUDEOPS_DATABASE_URL=sqlite:///srv/records.db",
	})
	require.NoError(t, err)
	cfg.Encryption.KeysFile, cfg.State.EnvFile = "/srv/keys", "/srv/claudeops.env"
	hidden := hiddenFiles(cfg)
	require.Subset(t, hidden, []string{
		"/var/lib/claudeops", "/var/lib/claudeops-transcripts", "/srv/records.db", "/srv/records.db-wal", "/srv/keys", "/srv/claudeops.env",
	})
	require.NotContains(t, hidden, "")
}
