package claude_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

func TestLocateFindsTheProgramOnThePathItIsGiven(t *testing.T) {
	t.Parallel()
	path := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Say("fine"))))
	cli, err := claude.Locate(t.Context(), claude.Options{
		Environ: []string{"PATH=relative:" + t.TempDir() + string(filepath.ListSeparator) + filepath.Dir(path)},
	})
	require.NoError(t, err)
	require.Equal(t, path, cli.Path())
	require.Equal(t, string(claudesim.VersionNew), cli.Version())
	require.Empty(t, cli.Warning())
}

func TestLocateWarnsOfAnUntestedVersionAndDrivesIt(t *testing.T) {
	t.Parallel()
	for _, version := range []struct {
		claimed string
		real    claudesim.Version
	}{{"2.1.300", claudesim.VersionOld}, {"9.8.7", claudesim.VersionNew}} {
		scenario := claudesim.Play(claudesim.Always(claudesim.Say("fine"))).As(version.real)
		scenario.ClaimedVersion = version.claimed
		b := newBenchOf(t, simtest.Install(t, scenario))
		require.Equal(t, version.claimed, b.cli.Version())
		require.Contains(t, b.cli.Warning(), version.claimed)
		require.Contains(t, b.cli.Warning(), string(version.real))

		result, err := b.cli.Run(t.Context(), b.invocation("look"), nil)
		require.NoError(t, err)
		require.Equal(t, version.claimed, result.CLIVersion)
		require.Positive(t, result.CostUSD)
	}
}

func TestLocateSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, process.WriteProgram(path, []byte(content)))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	for want, options := range map[string]claude.Options{
		"no executable called claude on the PATH":  {Environ: []string{"PATH=" + dir}},
		"no executable called claude2 on the PATH": {Path: "claude2"},
		"no such file":         {Path: filepath.Join(dir, "missing")},
		"it is a directory":    {Path: dir},
		"it is not executable": {Path: write("plain", "text", 0o600)},
		"exec format error":    {Path: write("binary", "\x00\x01", 0o700)},
		"exit code 3; is it the Claude Code CLI?: it needs a library sk-": {
			Path: write("failing", "#!/bin/sh\necho it needs >&2\necho a library sk- >&2\nexit 3\n", 0o700),
		},
		"claude 1.0.50 at " + filepath.Join(dir, "old") + " is too old: update it to 2.1.332": {
			Path: write("old", "#!/bin/sh\necho '1.0.50 (Claude Code)'\n", 0o700),
		},
		"no version number in \"hello": {Path: write("other", "#!/bin/sh\necho hello\n", 0o700)},
		"not an absolute path":         {Path: dir, ConfigDir: "relative"},
		"at least one day":             {Path: dir, RetentionDays: -1},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			cli, err := claude.Locate(t.Context(), options)
			require.Nil(t, cli)
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "\n")
			require.Contains(t, []claude.ErrorKind{claude.KindNotStarted, claude.KindInvalid}, claude.KindOf(err))
		})
	}
}
