package claude

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProjectName(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{
		"/srv/agents/chain_1.d": "-srv-agents-chain-1-d",
		"/srv/Größe/💡":          "-srv-Gr--e---",
		// Made by both measured versions.
		"/srv/" + strings.Repeat("é", 10) + "/" + strings.Repeat("x", 120) + "/" + strings.Repeat("y", 120)://
		"-srv-" + strings.Repeat("-", 10) + "-" + strings.Repeat("x", 120) + "-" + strings.Repeat("y", 63) + "-pzt83r",
	} {
		require.Equal(t, want, projectName(dir))
	}
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	work := filepath.Join(home, "work")
	require.NoError(t, os.Mkdir(work, 0o700))
	link := filepath.Join(home, "link")
	require.NoError(t, os.Symlink(work, link))
	cli := &CLI{options: Options{Environ: []string{"HOME=" + home}}}

	path, err := cli.TranscriptPath(link, ownID)
	require.NoError(t, err)
	direct, err := TranscriptPath(filepath.Join(home, ".claude"), work, ownID)
	require.NoError(t, err)
	require.Equal(t, direct, path, "an existing login, by the directory's real path")

	requireTranscript := func(want bool) {
		t.Helper()
		got, err := cli.HasTranscript(work, ownID)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	requireTranscript(false)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	requireTranscript(false) // an empty one cannot be resumed
	require.NoError(t, os.WriteFile(path, []byte("{}\n"), 0o600))
	requireTranscript(true)

	_, err = cli.HasTranscript(work, "../../etc/passwd")
	require.ErrorContains(t, err, "not a UUID")
	_, err = (&CLI{}).TranscriptPath(work, ownID)
	require.ErrorContains(t, err, "neither")
}
