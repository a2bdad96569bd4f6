package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// placed returns the place of an agent whose worker has the given environment.
func placed(t *testing.T, agent AgentPlace, environ ...string) guard.Place {
	t.Helper()
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	place, err := GuardPlace(cfg, environ, agent)
	require.NoError(t, err)
	return place
}

func TestGuardPlaceByDefault(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	state := home + "/.local/state/claudeops"
	place := placed(t, AgentPlace{}, "HOME="+home, simtest.WorkersUser, "PATH=/usr/local/bin:/bin", "ANTHROPIC_API_KEY=sk-x", "UNRELATED=y")
	require.Equal(t, []string{state + "/work"}, place.Work)
	require.Equal(t, state+"/claude/home", place.Home)
	require.Equal(t, "/tmp", place.Temp)
	require.Equal(t, []string{"/usr/local/bin", "/bin"}, place.Path)
	require.Equal(t, []guard.Door{{Host: "127.0.0.1", Port: 7233}, {Host: "127.0.0.1", Port: 8230}, {Host: "127.0.0.1", Port: 8233}, {Host: "localhost", Port: 7233}}, place.Doors)
	for _, own := range []string{
		state, state + "-transcripts", state + "/claudeops.db-wal", state + "/claude", home + "/.config/claudeops/claudeops.env",
	} {
		require.Contains(t, place.Own, own)
	}
	for _, name := range []string{"PATH", "HOME", "ANTHROPIC_API_KEY", "GIT_CONFIG_COUNT", "CLAUDE_CONFIG_DIR", "PWD"} {
		require.Contains(t, place.Variables, name)
	}
	require.NotContains(t, place.Variables, "UNRELATED")
	require.Empty(t, place.Variables["ANTHROPIC_API_KEY"], "a place is passed on, and holds no credentials")
}

func TestGuardPlaceAsConfigured(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"/work", "/repo", "/agent/.claude", "/real"} {
		require.NoError(t, os.MkdirAll(root+dir, 0o700))
	}
	require.NoError(t, os.Symlink(root+"/real", root+"/state"))
	policy := root + "/policy.yaml"
	require.NoError(t, os.WriteFile(policy, []byte("version: 1\ntiers: {1: {}, 2: {}, 3: {}}\n"), 0o600))
	services := root + "/services.yaml"
	require.NoError(t, os.WriteFile(services, []byte("version: 1\nservices: [{name: web}]\n"), 0o600))
	keys := root + "/keys"
	require.NoError(t, os.WriteFile(keys, []byte("new "+strings.Repeat("A", 43)+"=\n"), 0o600))
	require.NoError(t, os.WriteFile(root+"/temporal.toml", nil, 0o600))
	door := guard.Door{Host: "127.0.0.1", Port: 40001}
	place := placed(t, AgentPlace{
		Directory: root + "/repo", Variables: map[string]string{"TMPDIR": root + "/session/", "CLAUDEOPS_TIER": "2"}, Doors: []guard.Door{door},
	},
		"HOME="+root+"/agent", simtest.WorkersUser, "TMPDIR=/var/tmp", "CLAUDEOPS_STATE_DIR="+root+"/state", "CLAUDEOPS_WORK_DIR="+root+"/work",
		"CLAUDEOPS_REPOSITORIES="+root+"/repo", "CLAUDEOPS_CLAUDE_CONFIG_DIR=login", "CLAUDEOPS_POLICY_FILE="+policy, "CLAUDEOPS_SERVICES_FILE="+services,
		"CLAUDEOPS_ENCRYPTION_KEYS_FILE="+keys,
		"CLAUDEOPS_DATABASE_URL=sqlite://"+root+"/records.db", "CLAUDEOPS_UI_URL=https://temporal.example.org",
		"TEMPORAL_ADDRESS=dns:///temporal.lan:7244", "TEMPORAL_CONFIG_FILE="+root+"/temporal.toml")
	require.Equal(t, []string{root + "/repo"}, place.Work)
	require.Equal(t, root+"/agent", place.Home)
	require.Equal(t, root+"/session", place.Temp)
	require.Contains(t, place.Variables, "CLAUDEOPS_TIER")
	require.NotContains(t, place.Variables, "CLAUDEOPS_ENCRYPTION_KEYS_FILE")
	for _, own := range []string{
		root + "/state", root + "/real", root + "/records.db", root + "/records.db-wal", root + "/agent/.claude", root + "/agent/.claude.json",
		policy, services, keys, root + "/temporal.toml",
	} {
		require.Contains(t, place.Own, own)
	}
	require.ElementsMatch(t, []guard.Door{
		{Host: "127.0.0.1", Port: 7233},
		{Host: "127.0.0.1", Port: 8230},
		{Host: "127.0.0.1", Port: 8233},
		{Host: "temporal.lan", Port: 7244},
		{Host: "temporal.example.org", Port: 443},
		door,
	}, place.Doors)
}

// TestGuardPlaceHasTheDoorsOfTelemetry checks that the guard keeps agents from the worker's metrics and profiles.
func TestGuardPlaceHasTheDoorsOfTelemetry(t *testing.T) {
	t.Parallel()
	place := placed(t, AgentPlace{}, "HOME="+t.TempDir(), simtest.WorkersUser, "CLAUDEOPS_METRICS_ADDRESS=:9464", "CLAUDEOPS_PPROF_ADDRESS=127.0.0.1:6060")
	require.Subset(t, place.Doors, []guard.Door{{Host: "127.0.0.1", Port: 9464}, {Host: "127.0.0.1", Port: 6060}})
}

// TestDoors checks the addresses that agents must not connect to.
func TestDoors(t *testing.T) {
	t.Parallel()
	cfg := config.Config{
		State:  config.State{DatabaseURL: "postgres://u:hunter2@db.lan,standby.lan/records?port=5432,6432&hostaddr=10.9.8.7,10.9.8.6"},
		Notify: config.Notify{UIURL: "http://[::1]:8080/"},
		Web:    config.Web{URL: "https://ops.example.org", Listen: "0.0.0.0:9230"},
	}
	doors, err := doorsOf(cfg, []string{"TEMPORAL_ADDRESS=temporal.example.org"})
	require.NoError(t, err)
	require.Subset(t, doors, []guard.Door{
		{Host: "db.lan", Port: 5432},
		{Host: "10.9.8.7", Port: 5432},
		{Host: "standby.lan", Port: 6432},
		{Host: "10.9.8.6", Port: 6432},
		{Host: "::1", Port: 8080},
		{Host: "ops.example.org", Port: 443},
		{Host: "127.0.0.1", Port: 9230},
		{Host: "127.0.0.1", Port: config.WebPort},
		{Host: "temporal.example.org", Port: 443},
	})

	_, err = doorsOf(cfg, []string{"TEMPORAL_ADDRESS=temporal.lan:grpc"})
	require.ErrorIs(t, err, ErrConnectionSettings)
	_, err = doorsOf(cfg, []string{"TEMPORAL_CONFIG_FILE=" + filepath.Join(t.TempDir(), "none.toml"), "TEMPORAL_ADDRESS=http://x:1"})
	require.ErrorIs(t, err, ErrConnectionSettings)
}

// TestGuardPlaceHolds checks the guard's decisions about the files and ports of a default installation.
func TestGuardPlaceHolds(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	environ := []string{"HOME=" + home, simtest.WorkersUser, "PATH=/usr/bin:/bin", "CLAUDEOPS_STATE_DIR=" + home + "/state"}
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	policy, err := cfg.Guard.LoadPolicy()
	require.NoError(t, err)
	g := guard.New(policy, guard.Host{})
	place := placed(t, AgentPlace{}, environ...)
	for command, allowed := range map[string]bool{
		"cat notes": true, "cat ../claudeops.db": false, "head ../claude/.claude.json": false, "grep -r x ..": false,
		"ls ~": true, "curl http://127.0.0.1:7233/": false, "curl http://localhost:8233/": false, "curl http://127.0.0.1:8230/": false, "curl http://localhost:8096/": true,
	} {
		got := g.Decide(guard.Call{Tier: 1, Tool: "Bash", Input: []byte(`{"command":"` + command + `"}`), Place: place})
		require.Equal(t, allowed, got.Allowed, "%s: %s", command, got.Reason)
	}
}

func TestUnitsOf(t *testing.T) {
	t.Parallel()
	for groups, want := range map[string][]string{
		"0::/system.slice/ops-worker.service\n":                                       {"ops-worker"},
		"0::/system.slice/system-ops.slice/ops@a.service/agents\n":                    {"ops@a"},
		"12:pids:/system.slice/ops.service\n1:name=systemd:/system.slice/ops.service": {"ops"},
		"0::/user.slice/user-1000.slice/session-3.scope\n":                            nil,
		"0::/\n": nil,
	} {
		require.Equal(t, want, unitsOf(groups), groups)
	}
}
