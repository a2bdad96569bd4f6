package guard_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

// programsAt creates executable files with these contents in a directory, and returns the directory.
func programsAt(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for name, content := range contents {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700))
	}
	return dir
}

// parse parses a policy with these directories and programs. Tier 3 may do anything.
func parse(t *testing.T, directories, programs string) *guard.Policy {
	t.Helper()
	policy, err := guard.ParsePolicy([]byte("version: 1\ndirectories: [" + directories + "]\n" +
		"tiers: {1: {}, 2: {}, 3: {anything: true}}\nprograms:\n" + programs))
	require.NoError(t, err)
	return policy
}

// TestScriptsAreNotHeld checks that a program of texts that is a script is not taken for one that the kernel holds.
func TestScriptsAreNotHeld(t *testing.T) {
	t.Parallel()
	dir := programsAt(t, map[string]string{"interpreter": "", "sed": "", "jq": ""})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "yq"), []byte("#!"+dir+"/interpreter\n"), 0o700))
	policy := parse(t, dir, "  yq: {tier: 1}\n  sed: {tier: 1}\n  jq: {tier: 1}\n")
	require.Equal(t, []string{"yq"}, policy.Executables(1).Unheld())
	require.True(t, policy.Executables(1).HoldTexts())
	require.Empty(t, policy.Executables(3).Unheld())
}

func TestExecutables(t *testing.T) {
	t.Parallel()
	dir := programsAt(t, map[string]string{
		"plain": "", "helper": "", "interpreter": "", "part/one": "", "part/two": "", "ungranted": "", "runner": "", "late": "", "deep": "",
	})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script"), []byte("#!"+dir+"/interpreter\n"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data"), nil, 0o600))
	second := programsAt(t, map[string]string{"plain": ""})
	require.NoError(t, os.Symlink(dir, filepath.Join(second, "same")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "plain"), filepath.Join(dir, "alias")))
	policy := parse(t, dir+", "+second+", "+second+"/same, /nowhere", `
  plain: {tier: 1}
  alias: {tier: 1, starts: [helper]}
  script: {tier: 1, starts: [`+dir+`/part/*]}
  data: {tier: 1}
  missing: {tier: 1, starts: [`+dir+`/missing/*]}
  deep: {tier: 1, starts: [script], commands: {late: {tier: 2, starts: [late, deep]}}}
  runner: {tier: 1, args: COMMAND, style: posix}
  late: {tier: 2}
  ungranted: {tier: 3}
`)
	in := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		return paths
	}
	one := policy.Executables(1)
	script := in("interpreter", "part/one", "part/two", "script")
	twin := filepath.Join(second, "plain")
	require.ElementsMatch(t, append(in("helper", "plain"), twin), one.Of(in("plain")[0]), "an alias is the same file")
	require.ElementsMatch(t, append(in("plain"), twin), one.Of(twin))
	require.Equal(t, script, one.Of(in("script")[0]))
	require.Equal(t, append(in("deep"), script...), one.Of(in("deep")[0]))
	all := slices.Sorted(slices.Values(append(in("deep", "helper", "interpreter", "part/one", "part/two", "plain", "runner", "script"),
		twin)))
	require.Equal(t, all, one.All())
	require.Equal(t, all, one.Of(in("runner")[0]), "it starts what it is given")
	for _, none := range in("ungranted", "late", "data", "interpreter", "missing") {
		require.Empty(t, one.Of(none), none)
	}
	two := policy.Executables(2)
	require.Equal(t, append(in("deep", "interpreter", "late"), script[1:]...), two.Of(in("deep")[0]))
	require.Equal(t, in("late"), two.Of(in("late")[0]))
	require.Nil(t, policy.Executables(3), "no limit")
}

// TestExecutablesOfTheBuiltInPolicy checks on this host that no interpreter is executable by a usual program.
func TestExecutablesOfTheBuiltInPolicy(t *testing.T) {
	t.Parallel()
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(t, err)
	for tier := 1; tier <= 2; tier++ {
		executables := policy.Executables(tier)
		cat, err := filepath.EvalSymlinks("/bin/cat")
		require.NoError(t, err)
		require.Contains(t, executables.Of(cat), cat)
		for _, file := range executables.Of(cat) {
			require.Regexp(t, `/(cat|ld[-.].*|busybox|coreutils)$`, file)
		}
		require.Subset(t, executables.All(), executables.Of(cat))
	}
}

// TestTextsThatAreShells checks that texts count as held to their executables only where no program of texts is a
// shell, too.
func TestTextsThatAreShells(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]func(dir string) error{
		"":             func(string) error { return nil },
		"a link":       func(dir string) error { return os.Symlink("busybox", dir+"/awk") },
		"the same":     func(dir string) error { return os.Link(dir+"/sh", dir+"/awk") },
		"what sed has": func(dir string) error { return os.WriteFile(dir+"/sed", []byte("#!"+dir+"/sh\n"), 0o700) },
	} {
		dir := programsAt(t, map[string]string{"sh": "", "busybox": "", "jq": "", "cat": ""})
		require.NoError(t, create(dir))
		executables := parse(t, dir, "  {awk: {tier: 1}, sed: {tier: 1}, jq: {tier: 1}, cat: {tier: 1}}").Executables(1)
		require.Equal(t, name == "", executables.HoldTexts(), name)
	}
	var none *guard.Executables
	require.False(t, none.HoldTexts())
}

func TestStartsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, starts := range []string{`""`, `"a/b"`, `"./x"`, `"/a/[x"`} {
		_, err := guard.ParsePolicy([]byte("version: 1\ntiers: {1: {}, 2: {}, 3: {}}\nprograms: {a: {tier: 1, starts: [" + starts + "]}}"))
		require.ErrorContains(t, err, "starts: ")
	}
}

// BenchmarkExecutables measures what every session of Tiers 1 and 2 does at its start.
func BenchmarkExecutables(b *testing.B) {
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(b, err)
	for b.Loop() {
		require.NotEmpty(b, policy.Executables(2).All())
	}
}

// TestReached checks what programs of texts load besides the files of their tier: libraries of programs in a directory
// of the operator.
func TestReached(t *testing.T) {
	t.Parallel()
	own, err := guard.ParsePolicyOver(deploy.Policy, []byte("version: 1\nextends: default\ndirectories: [/srv/brew/bin]\n"))
	require.NoError(t, err)
	place, _ := stage(t)
	read, write := own.Reached(1, place)
	require.Equal(t, []string{place.Temp}, write)
	require.Subset(t, read, []string{place.Work[0], place.Home, place.Temp, "/etc", "/srv/brew/lib", "/srv/brew/Cellar"})
	require.NotContains(t, read, "/opt")
	require.NotContains(t, read, "/srv/brew")
}
