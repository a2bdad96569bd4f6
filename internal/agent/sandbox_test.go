package agent

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// policyOf returns a small policy with more as the limits of Tier 1.
func policyOf(t *testing.T, more string) *guard.Policy {
	t.Helper()
	policy, err := guard.ParsePolicy([]byte("version: 1\ntiers: {1: {" + more + "}, 2: {}, 3: {anything: true}}\n" +
		"programs: {sudo: {tier: 2, args: \"COMMAND\", style: posix}}"))
	require.NoError(t, err)
	return policy
}

func TestGrantsOfThePolicy(t *testing.T) {
	t.Parallel()
	home, data := t.TempDir(), t.TempDir()
	hidden := []string{home}
	for more, want := range map[string]tierGrants{
		``:               {},
		`anything: true`: {Sudo: true, Signals: true},
		`signals: true`:  {Signals: true},
		`read: [".", "~", $TMPDIR, /etc, ` + home + `]`: {Readable: []string{home}},
		`read: [/], write: [".", ` + data + `]`:         {Writable: []string{data}},
	} {
		require.Equal(t, want, grantsOf(policyOf(t, more), escalation.TierObserve, hidden), more)
	}
	require.Equal(t, tierGrants{Sudo: true}, grantsOf(policyOf(t, ""), escalation.TierSafeRepair, hidden))
	projects := policyOf(t, "")
	projects.Projects = []string{home, "/srv/media"}
	require.Equal(t, []string{home}, grantsOf(projects, escalation.TierObserve, hidden).Readable, "Compose reads its files there")
	builtIn, err := config.Guard{}.LoadPolicy()
	require.NoError(t, err)
	for _, tier := range []escalation.Tier{escalation.TierObserve, escalation.TierSafeRepair} {
		require.Zero(t, grantsOf(builtIn, tier, hidden), "the built-in policy at %s", tier)
	}
}

func TestSandboxOfATier(t *testing.T) {
	t.Parallel()
	work, own := t.TempDir(), []string{"/own"}
	docs, data := t.TempDir(), t.TempDir()
	boxes := sandboxes{
		choice: config.SandboxAuto, hidden: []string{"/state", docs},
		policy: policyOf(t, "read: ["+docs+"], write: ["+data+"], signals: true"),
	}
	at := func(tier escalation.Tier) activities.AgentRun {
		return activities.AgentRun{Tier: tier, Directory: work}
	}

	observe, _ := boxes.of(at(escalation.TierObserve), own)
	require.Subset(t, observe.Hidden, boxes.hidden)
	require.Equal(t, []string{work, docs}, observe.Readable)
	require.Equal(t, []string{"/own", data}, observe.Writable)
	require.False(t, observe.Setuid)
	require.False(t, observe.Required)
	require.True(t, observe.Signals)

	repair, _ := boxes.of(at(escalation.TierSafeRepair), own)
	require.Equal(t, []string{"/own", work}, repair.Writable)
	require.True(t, repair.Setuid)

	require.NotNil(t, observe.Executable, "only what the policy grants, which is nothing")
	require.Empty(t, observe.Executable)

	full, why := boxes.of(at(escalation.TierFullRepair), own)
	require.Nil(t, full)
	require.Equal(t, "none at tier 3", why)
	dry := at(escalation.TierFullRepair)
	dry.DryRun = true
	look, _ := boxes.of(dry, own)
	look.Hidden, observe.Hidden = nil, nil // sessions of other tests come and go
	require.Equal(t, observe, look, "a dry run only looks")

	boxes.choice = config.SandboxRequire
	required, _ := boxes.of(at(escalation.TierObserve), own)
	require.True(t, required.Required)
	boxes.choice = config.SandboxOff
	none, why := boxes.of(at(escalation.TierObserve), own)
	require.Nil(t, none)
	require.Equal(t, "off", why)
	require.True(t, boxes.cell("/home").Required, "checks never run without a sandbox, whatever agents do")
}

// TestExecutableFilesOfATier checks that a tier may execute its programs, except those that the tier can write.
func TestExecutableFilesOfATier(t *testing.T) {
	t.Parallel()
	work, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	programs, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, dir := range []string{work, programs} {
		for _, name := range []string{"look", "repair", "other"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o700))
		}
	}
	policy, err := guard.ParsePolicy([]byte("version: 1\ndirectories: [" + work + ", " + programs + "]\n" +
		"tiers: {1: {}, 2: {}, 3: {anything: true}}\nprograms: {look: {tier: 1}, repair: {tier: 2}}"))
	require.NoError(t, err)
	boxes := sandboxes{choice: config.SandboxAuto, policy: policy}
	look, repair := filepath.Join(programs, "look"), filepath.Join(programs, "repair")
	observe, _ := boxes.of(activities.AgentRun{Tier: escalation.TierObserve, Directory: work}, nil)
	require.ElementsMatch(t, []string{look, filepath.Join(work, "look")}, observe.Executable)
	safe, _ := boxes.of(activities.AgentRun{Tier: escalation.TierSafeRepair, Directory: work}, nil)
	require.ElementsMatch(t, []string{look, repair}, safe.Executable, "tier 2 can write the working directory")
}

func TestHiddenPaths(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	environ := []string{
		"HOME=" + home, simtest.WorkersUser, "CLAUDEOPS_STATE_DIR=/var/lib/claudeops", "CLAUDEOPS_DATABASE_URL=sqlite:///srv/records.db",
		"CLAUDEOPS_WORK_DIR=" + home, "TEMPORAL_TLS_CLIENT_KEY_PATH=/etc/temporal/key.pem", "SHELL=/bin/sh", "AWS_REGION=eu-west-1",
	}
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	cfg.Encryption.KeysFile, cfg.State.EnvFile = "/srv/keys", "/srv/claudeops.env"
	hidden := hiddenPaths(cfg, environ)
	require.Subset(t, hidden, []string{
		"/var/lib/claudeops", "/var/lib/claudeops-transcripts", "/srv/records.db", "/srv/records.db-wal", "/home", "/root", home,
		filepath.Join(home, ".ssh"), "/etc/temporal/key.pem", "/srv/keys", "/srv/claudeops.env",
	})
	require.NotContains(t, hidden, "/bin/sh")
	require.NotContains(t, hidden, "eu-west-1")

	once := newSandboxes(cfg, nil, environ, home, "/srv/records.db").hidden
	require.Subset(t, once, hidden)
	require.Len(t, once, len(slices.Compact(slices.Sorted(slices.Values(hidden)))), "each path once")
}

func TestTempDirOfAnAgent(t *testing.T) {
	t.Parallel()
	dir, err := newTempDir(nil)
	require.NoError(t, err)
	info, err := os.Stat(dir.path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.Contains(t, tempDirs(), dir.path)
	require.NoError(t, os.MkdirAll(filepath.Join(dir.path, "left", "behind"), 0o700))
	require.NoError(t, dir.remove())
	require.NoDirExists(t, dir.path)
}
