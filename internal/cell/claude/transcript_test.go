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
		// Both measured versions of the CLI made the next name.
		"/srv/" + strings.Repeat("é", 10) + "/" + strings.Repeat("x", 120) + "/" + strings.Repeat("y", 120)://
		"-srv-" + strings.Repeat("-", 10) + "-" + strings.Repeat("x", 120) + "-" + strings.Repeat("y", 63) + "-pzt83r",
	} {
		require.Equal(t, want, projectName(dir))
	}
}

// transcripts returns texts of transcripts. The value is true if the CLI can resume the transcript.
func transcripts() map[string]bool {
	const (
		mode = `{"type":"mode","mode":"normal","note":{"type":"user"}}` + "\n"
		said = `{"parentUuid":null,"type":"user","message":{"role":"user","content":"look"}}`
	)
	return map[string]bool{
		"":                                       false,
		"{}\n":                                   false,
		mode:                                     false, // a fork that was killed at once leaves this
		mode + said[:len(said)-5]:                false,
		"garbage\n" + mode + said:                true,
		mode + `{"type":"assistant"}` + "\n":     true,
		mode + strings.Repeat("x", 1<<20) + said: false,
	}
}

func TestOnlyATranscriptWithoutAMessageIsRemoved(t *testing.T) {
	t.Parallel()
	for text, kept := range transcripts() {
		cli := &CLI{options: Options{ConfigDir: t.TempDir()}}
		path, err := cli.TranscriptPath("/work", ownID)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))

		require.NoError(t, cli.clearEmptyTranscript(Invocation{Dir: "/work", SessionID: ownID, Resume: ownID}))
		require.FileExists(t, path, "it is to be continued")
		require.NoError(t, cli.clearEmptyTranscript(Invocation{Dir: "/work", SessionID: ownID}))
		if kept {
			require.FileExists(t, path, text)
		} else {
			require.NoFileExists(t, path, text)
		}
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
	direct, err := transcriptPath(filepath.Join(home, ".claude"), work, ownID)
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
	for text, want := range transcripts() {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		requireTranscript(want)
	}

	_, err = cli.HasTranscript(work, "../../etc/passwd")
	require.ErrorContains(t, err, "not a UUID")
	_, err = (&CLI{}).TranscriptPath(work, ownID)
	require.ErrorContains(t, err, "neither")
}
