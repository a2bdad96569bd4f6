package cell

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/plant/config"
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
		require.Equal(t, want, grantsOf(policyOf(t, more), observe, hidden), more)
	}
	require.Equal(t, tierGrants{Sudo: true}, grantsOf(policyOf(t, ""), repair, hidden))
	projects := policyOf(t, "")
	projects.Projects = []string{home, "/srv/media"}
	require.Equal(t, []string{home}, grantsOf(projects, observe, hidden).Readable, "Compose reads its files there")
	builtIn, err := config.Guard{}.LoadPolicy()
	require.NoError(t, err)
	for _, tier := range []int{observe, repair} {
		require.Zero(t, grantsOf(builtIn, tier, hidden), "the built-in policy at tier %d", tier)
	}
}

func TestSandboxOfATier(t *testing.T) {
	t.Parallel()
	work, own := t.TempDir(), []string{"/own"}
	docs, data := t.TempDir(), t.TempDir()
	boxes := sandboxes{
		choice: SandboxIfPossible, hidden: []string{"/state", docs},
		policy: policyOf(t, "read: ["+docs+"], write: ["+data+"], signals: true"),
	}
	look, _ := boxes.of(observe, work, own)
	require.Subset(t, look.Hidden, boxes.hidden)
	require.Equal(t, []string{work, docs}, look.Readable)
	require.Equal(t, []string{"/own", data}, look.Writable)
	require.False(t, look.Setuid)
	require.False(t, look.Required)
	require.True(t, look.Signals)

	safe, _ := boxes.of(repair, work, own)
	require.Equal(t, []string{"/own", work}, safe.Writable)
	require.True(t, safe.Setuid)

	require.NotNil(t, look.Executable, "only what the policy grants, which is nothing")
	require.Empty(t, look.Executable)

	full, why := boxes.of(unconfined, work, own)
	require.Nil(t, full)
	require.Equal(t, "none at tier 3", why)
	boxes.choice = SandboxRequired
	required, _ := boxes.of(observe, work, own)
	require.True(t, required.Required)
	boxes.choice = SandboxOff
	none, why := boxes.of(observe, work, own)
	require.Nil(t, none)
	require.Equal(t, "off", why)
	require.True(t, boxes.sealed("/home").Required, "checks never run without a sandbox, whatever agents do")
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
	boxes := sandboxes{choice: SandboxIfPossible, policy: policy}
	lookAt, repairAt := filepath.Join(programs, "look"), filepath.Join(programs, "repair")
	look, _ := boxes.of(observe, work, nil)
	require.ElementsMatch(t, []string{lookAt, filepath.Join(work, "look")}, look.Executable)
	safe, _ := boxes.of(repair, work, nil)
	require.ElementsMatch(t, []string{lookAt, repairAt}, safe.Executable, "tier 2 can write the working directory")
}

func TestHiddenPaths(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	options := Options{
		Hidden: []string{"/var/lib/claudeops"}, Directories: []string{home},
		Driver: claude.Options{Environ: []string{
			"HOME=" + home, "TEMPORAL_TLS_CLIENT_KEY_PATH=/etc/temporal/key.pem", "SHELL=/bin/sh", "AWS_REGION=eu-west-1",
		}},
	}
	hidden := hiddenPaths(options)
	require.Subset(t, hidden, []string{"/var/lib/claudeops", "/home", "/root", home, filepath.Join(home, ".ssh"), "/etc/temporal/key.pem"})
	require.NotContains(t, hidden, "/bin/sh")
	require.NotContains(t, hidden, "eu-west-1")

	once := newSandboxes(options, home, "/var/lib/claudeops").hidden
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
