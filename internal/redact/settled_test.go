package redact

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSettled feeds texts byte by byte. What is shown never has a part of a secret, and later only becomes longer.
func TestSettled(t *testing.T) {
	t.Parallel()
	r := New([]string{"ANTHROPIC_API_KEY=sk-secret-1", `QUOTED_SECRET=say 1 "friend"`})
	const line = "kQ7zX1bW9+Rm3VtYpL0sD8fGhJ2cN4uA6eTiKoUyBvExZqSw5rIjHgFdCaPlMnO1"
	body := strings.Repeat(line+"\n", 4)
	for name, text := range map[string]string{
		"word":    "the key is sk-secret-1 and no other ",
		"words":   `he would say 1 "friend" and go in `,
		"token":   "use ghp_" + fill(36) + " here ",
		"block":   "look:\n```\n00000000  73 6b 2d 73\n```\nthat is all ",
		"no head": "this:\n" + body + "that is all ",
	} {
		shown := ""
		for i := range len(text) + 1 {
			now := r.Settled(text[:i])
			require.True(t, strings.HasPrefix(now, shown), "%s: %q, then %q", name, shown, now)
			shown = now
			for _, part := range []string{"sk-sec", `say 1 "f`, "ghp_a", "0000  73", line} {
				if part != "0000  73" || i < strings.LastIndex(text, fence) {
					require.NotContains(t, shown, part, name)
				}
			}
		}
		require.Equal(t, r.Text(text), shown, name)
	}
	require.Empty(t, r.Settled(""))
	require.Empty(t, (*Redactor)(nil).Settled("one"))
	require.Equal(t, "one ", (*Redactor)(nil).Settled("one two"))
}
