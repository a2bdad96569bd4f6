package agent

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plant/config"
)

func TestLevels(t *testing.T) {
	t.Parallel()
	require.Equal(t, levelFull, levelOf(true, true))
	require.Equal(t, levelKernel, levelOf(true, false))
	require.Equal(t, levelUser, levelOf(false, true))
	require.Equal(t, levelGuard, levelOf(false, false))
	for _, each := range []level{levelFull, levelUser, levelKernel, levelGuard} {
		require.NotEmpty(t, each.open())
	}
}

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
