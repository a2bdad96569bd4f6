package claude_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkForkElsewhere resumes a conversation in another working directory, then in a third one, and then in the first
// one again. Each time, the transcript is copied to where the CLI looks for it in that directory, as a worker does.
func checkForkElsewhere(t *testing.T, b *bench) {
	parent := b.invocation("tell me about the first tier")
	parent.AllowedTools = []string{"Bash(pwd)"}
	b.run(t, parent)
	before := b.transcript(t, parent.SessionID)

	elsewhere := filepath.Join(t.TempDir(), "a tree of its own")
	require.NoError(t, os.Mkdir(elsewhere, 0o700))

	last := b.dir
	fork := func(from, prompt, dir string) string {
		t.Helper()
		b.move(t, from, last, dir)
		last = dir
		child := parent
		child.SessionID, child.Resume, child.Prompt, child.Dir = b.invocation("").SessionID, from, prompt, dir
		result := b.run(t, child)
		require.Equal(t, 2, result.Turns)
		return child.SessionID
	}
	second := fork(parent.SessionID, "now you are the second tier", elsewhere)
	requests := b.requests()
	latest := requests[len(requests)-1]
	require.Equal(t, []string{parent.Prompt, "now you are the second tier"}, latest.Prompts())
	require.Contains(t, latest.ToolResults()[len(latest.ToolResults())-1], elsewhere, "its commands run there")

	require.NoError(t, os.Remove(elsewhere))
	require.NoError(t, os.Mkdir(elsewhere, 0o700))
	third := fork(second, "now you are the third tier", elsewhere)
	fork(third, "and back", b.dir)
	requests = b.requests()
	latest = requests[len(requests)-1]
	require.Equal(t, []string{parent.Prompt, "now you are the second tier", "now you are the third tier", "and back"}, latest.Prompts())
	require.Equal(t, string(before), string(b.transcript(t, parent.SessionID)), "the parent's transcript is never written again")
}

// move copies a transcript to where the CLI looks for it in another working directory.
func (b *bench) move(t *testing.T, sessionID, from, to string) {
	t.Helper()
	source, err := b.cli.TranscriptPath(from, sessionID)
	require.NoError(t, err)
	target, err := b.cli.TranscriptPath(to, sessionID)
	require.NoError(t, err)
	content, err := os.ReadFile(source)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o700))
	require.NoError(t, os.WriteFile(target, content, 0o600))
}
