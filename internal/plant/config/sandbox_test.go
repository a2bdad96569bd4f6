package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAgentUser(t *testing.T) {
	t.Parallel()
	cfg := load(t, "CLAUDEOPS_AGENT_USER=daemon", "CLAUDEOPS_STATE_DIR=/var/lib/claudeops")
	require.Equal(t, "daemon", cfg.Claude.Account.Name)
	require.Equal(t, 1, cfg.Claude.Account.UID)
	require.Equal(t, 1, cfg.Claude.Account.GID)
	require.Contains(t, cfg.Claude.Account.Groups, 1)
	require.Equal(t, "/var/lib/claudeops-agents/claude", cfg.Claude.ConfigDir)
	require.Equal(t, "/var/lib/claudeops-agents/work", cfg.Claude.WorkDir)
}

func TestAgentUserThatCannotBe(t *testing.T) {
	t.Parallel()
	for want, settings := range map[string][]string{
		"it must be the name of a user of this system":       {"CLAUDEOPS_AGENT_USER=no-such-user"},
		"it must be a user with fewer rights than root":      {"CLAUDEOPS_AGENT_USER=root"},
		"it must come without CLAUDEOPS_CONTAINMENT=group":   {"CLAUDEOPS_AGENT_USER=daemon", "CLAUDEOPS_CONTAINMENT=group"},
		"it must come without CLAUDEOPS_CLAUDE_CONFIG_DIR=l": {"CLAUDEOPS_AGENT_USER=daemon", "CLAUDEOPS_CLAUDE_CONFIG_DIR=login", "CLAUDE_CONFIG_DIR=/"},
	} {
		found := problemsOf(t, settings...)
		require.Len(t, found, 1)
		require.Contains(t, found[0].Sentence, want)
	}
}

func TestSandboxIsOneOfThree(t *testing.T) {
	t.Parallel()
	require.Equal(t, SandboxAuto, load(t).Claude.Sandbox)
	require.Equal(t, SandboxRequire, load(t, "CLAUDEOPS_SANDBOX=require").Claude.Sandbox)
	require.Len(t, problemsOf(t, "CLAUDEOPS_SANDBOX=yes"), 1)
}

// TestAgentUserByDefault checks when agents get a user of their own without being asked for.
func TestAgentUserByDefault(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settings Claude
		may      bool
		want     string
	}{
		"root":                  {may: true, want: DefaultAgentUser},
		"an ordinary user":      {},
		"root, not wanted":      {settings: Claude{AgentUser: "none"}, may: true, want: "none"},
		"another, by name":      {settings: Claude{AgentUser: "daemon"}, want: "daemon"},
		"root, its own login":   {settings: Claude{ConfigDir: userLogin}, may: true},
		"root, without an init": {settings: Claude{Containment: ContainmentGroup}, may: true},
	} {
		require.Equal(t, tc.want, tc.settings.agentUser(tc.may), name)
	}
}

// TestStateOfRoot checks that the agents' user can reach the directories beside the state directory of root.
func TestStateOfRoot(t *testing.T) {
	t.Parallel()
	require.Equal(t, "/var/lib/claudeops", foreignVariables{home: "/root", mayChangeUser: true}.stateDir())
	require.Equal(t, "/root/.local/state/claudeops", foreignVariables{home: "/root"}.stateDir())
	require.Equal(t, "/home/anna/.local/state/claudeops", foreignVariables{home: "/home/anna", mayChangeUser: true}.stateDir())
	require.Equal(t, "/x/claudeops", foreignVariables{home: "/root", xdgState: "/x", mayChangeUser: true}.stateDir())
}
