package supervisor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
)

func TestGrantsByRules(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rules []string
		want  tierGrants
	}{
		"built-in programs":   {[]string{"Bash(docker restart:*)", "Bash(systemctl restart:*)", "Read(./**)"}, tierGrants{}},
		"a script":            {[]string{"Bash(./restart.sh)"}, tierGrants{Signals: true}},
		"sudo":                {[]string{"Bash(sudo systemctl restart:*)"}, tierGrants{Sudo: true, Signals: true}},
		"sudo by its path":    {[]string{"Bash(/usr/bin/sudo:*)"}, tierGrants{Sudo: true, Signals: true}},
		"everything":          {[]string{"Bash"}, tierGrants{Sudo: true, Signals: true}},
		"everything, spelled": {[]string{"Bash(*)"}, tierGrants{Sudo: true, Signals: true}},
	} {
		require.Equal(t, tc.want, grantsByRules(escalation.TierPolicy{AllowedTools: tc.rules}), name)
	}
	cfg, err := config.Load([]string{"HOME=/home/someone"})
	require.NoError(t, err)
	for _, tier := range []escalation.Tier{escalation.TierObserve, escalation.TierSafeRepair} {
		require.Zero(t, grantsByRules(cfg.Policy().For(tier)), "the built-in rules of %s", tier)
	}
}

func TestSandboxOfATier(t *testing.T) {
	t.Parallel()
	work, own := t.TempDir(), []string{"/own"}
	boxes := sandboxes{choice: config.SandboxAuto, hidden: []string{"/state"}, grantsOf: func(escalation.TierPolicy) tierGrants {
		return tierGrants{Sudo: true, Readable: []string{"/srv/docs"}, Writable: []string{"/srv/data"}}
	}}
	at := func(tier escalation.Tier) activities.AgentRun {
		return activities.AgentRun{Tier: tier, Directory: work}
	}

	observe, _ := boxes.of(at(escalation.TierObserve), own)
	require.Equal(t, []string{"/state"}, observe.Hidden)
	require.Equal(t, []string{work, "/srv/docs"}, observe.Readable)
	require.Equal(t, []string{"/own", "/srv/data"}, observe.Writable)
	require.True(t, observe.Setuid)
	require.False(t, observe.Required)
	require.False(t, observe.Signals)

	repair, _ := boxes.of(at(escalation.TierSafeRepair), own)
	require.Equal(t, []string{"/own", "/srv/data", work}, repair.Writable)

	full, why := boxes.of(at(escalation.TierFullRepair), own)
	require.Nil(t, full)
	require.Equal(t, "none at tier 3", why)
	dry := at(escalation.TierFullRepair)
	dry.DryRun = true
	look, _ := boxes.of(dry, own)
	require.Equal(t, observe, look, "a dry run only looks")

	boxes.choice = config.SandboxRequire
	required, _ := boxes.of(at(escalation.TierObserve), own)
	require.True(t, required.Required)
	boxes.choice = config.SandboxOff
	none, why := boxes.of(at(escalation.TierObserve), own)
	require.Nil(t, none)
	require.Equal(t, "off", why)
}

func TestHiddenPaths(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	environ := []string{
		"HOME=" + home, "CLAUDEOPS_STATE_DIR=/var/lib/claudeops", "CLAUDEOPS_DATABASE_URL=sqlite:///srv/records.db",
		"CLAUDEOPS_WORK_DIR=" + home, "TEMPORAL_TLS_CLIENT_KEY_PATH=/etc/temporal/key.pem", "SHELL=/bin/sh", "AWS_REGION=eu-west-1",
	}
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	hidden := hiddenPaths(cfg, environ)
	require.Subset(t, hidden, []string{
		"/var/lib/claudeops", "/var/lib/claudeops-transcripts", "/srv/records.db", "/srv/records.db-wal", "/home", "/root", home,
		filepath.Join(home, ".ssh"), "/etc/temporal/key.pem",
	})
	require.NotContains(t, hidden, "/bin/sh")
	require.NotContains(t, hidden, "eu-west-1")
}

func TestTempDirOfAnAgent(t *testing.T) {
	t.Parallel()
	dir, err := newTempDir(nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}
