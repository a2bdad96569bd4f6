package claude_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkForkElsewhere resumes a conversation in another working directory, then in a third one, and then in the first one
// again. All share their transcripts. The directories have no sessions of their own before.
func checkForkElsewhere(t *testing.T, b *bench) {
	parent := b.invocation("tell me about the first tier")
	parent.AllowedTools = []string{"Bash(pwd)"}
	b.run(t, parent)
	before := b.transcript(t, parent.SessionID)

	elsewhere := filepath.Join(t.TempDir(), "a tree of its own")
	require.NoError(t, os.Mkdir(elsewhere, 0o700))
	require.NoError(t, b.cli.ShareTranscripts(elsewhere, b.dir))
	require.NoError(t, b.cli.ShareTranscripts(elsewhere, b.dir), "a second time it is there")

	fork := func(from, prompt, dir string) string {
		t.Helper()
		child := parent
		child.SessionID, child.Resume, child.Prompt, child.Dir = b.invocation("").SessionID, from, prompt, dir
		result := b.run(t, child)
		require.Equal(t, 2, result.Turns)
		found, err := b.cli.HasTranscript(b.dir, child.SessionID)
		require.NoError(t, err)
		require.True(t, found, "it is found by the shared directory")
		return child.SessionID
	}
	second := fork(parent.SessionID, "now you are the second tier", elsewhere)
	requests := b.requests()
	last := requests[len(requests)-1]
	require.Equal(t, []string{parent.Prompt, "now you are the second tier"}, last.Prompts())
	require.Contains(t, last.ToolResults()[len(last.ToolResults())-1], elsewhere, "its commands run there")

	require.NoError(t, b.cli.UnshareTranscripts(elsewhere))
	require.NoError(t, b.cli.UnshareTranscripts(elsewhere), "a second time there is nothing left")
	require.NoError(t, os.Remove(elsewhere))
	require.NoError(t, os.Mkdir(elsewhere, 0o700))
	require.NoError(t, b.cli.ShareTranscripts(elsewhere, b.dir))
	third := fork(second, "now you are the third tier", elsewhere)
	fork(third, "and back", b.dir)
	requests = b.requests()
	last = requests[len(requests)-1]
	require.Equal(t, []string{parent.Prompt, "now you are the second tier", "now you are the third tier", "and back"}, last.Prompts())
	require.Equal(t, string(before), string(b.transcript(t, parent.SessionID)), "the parent's transcript is never written again")
}
