package simtest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/claudesim"
)

// script writes a program that answers --version.
func script(t *testing.T, version string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claude")
	text := "#!/bin/sh\ncase $1 in\n--version) " + version + ";;\nesac\n"
	require.NoError(t, process.WriteProgram(path, []byte(text)))
	return path
}

func TestNewCandidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version, number string
		nearest         claudesim.Version
	}{
		{"echo '2.1.300 (Claude Code)'", "2.1.300", claudesim.VersionOld},
		{"echo a warning; echo '2.1.333 (Claude Code)'", "2.1.333", claudesim.VersionNew},
	} {
		path := script(t, c.version)
		got, err := newCandidate(t, path)
		require.NoError(t, err)
		require.Equal(t, candidate{path: path, number: c.number, nearest: c.nearest}, got)
		require.Equal(t, []claudesim.Version{c.nearest}, got.versions())
		require.Equal(t, c.number, got.name(c.nearest))
	}
}

func TestNewCandidateRefuses(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"claude":                              "is not an absolute path",
		filepath.Join(t.TempDir(), "missing"): "no such file",
		script(t, "exit 3"):                   "--version: exit status 3",
		script(t, "echo hello"):               `printed "hello\n"`,
		script(t, "echo 'version two'"):       "is no version number",
		script(t, "echo 2.1 of a thing"):      "is no version number",
	} {
		_, err := newCandidate(t, path)
		require.ErrorContains(t, err, want)
	}
}

// TestWithoutACandidate checks that tests run the pinned CLIs without the flag.
func TestWithoutACandidate(t *testing.T) {
	t.Parallel()
	var none *candidate
	require.Equal(t, []claudesim.Version{claudesim.VersionOld, claudesim.VersionNew}, none.versions())
	require.Equal(t, string(claudesim.VersionOld), none.name(claudesim.VersionOld))
}

// TestOnlyTheNearestReleaseGoesByTheCandidatesNumber covers a test that chooses its release without Versions.
func TestOnlyTheNearestReleaseGoesByTheCandidatesNumber(t *testing.T) {
	t.Parallel()
	c := &candidate{path: "/claude", number: "2.1.333", nearest: claudesim.VersionNew}
	require.Equal(t, string(claudesim.VersionOld), c.name(claudesim.VersionOld))
	require.Equal(t, "2.1.333", c.name(claudesim.VersionNew))
	scenario := claudesim.Play(claudesim.Always(claudesim.Say("hi")))
	require.Equal(t, "2.1.333", c.playing(scenario, claudesim.VersionNew).ClaimedVersion)
	require.Equal(t, claudesim.VersionNew, c.playing(scenario, claudesim.VersionNew).Version)
	require.Empty(t, c.playing(scenario, claudesim.VersionOld).ClaimedVersion)
}
