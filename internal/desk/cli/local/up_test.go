package local

import (
	"bufio"
	"errors"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/plant/program"
)

// TestUpPrintsTheLinkToPeopleOnly checks that Print prints the link with the token on a terminal, but not into a
// file.
func TestUpPrintsTheLinkToPeopleOnly(t *testing.T) {
	t.Parallel()
	r := Running{
		Pages: "http://127.0.0.1:8230", Temporal: "127.0.0.1:7233", WebUI: "http://127.0.0.1:8233", StateDir: "/var/lib/it's", OwnDir: true,
	}
	const token = "secret"
	for _, format := range []console.Format{console.Text, console.JSON} {
		var kept strings.Builder
		require.NoError(t, r.Print(&console.Console{Process: program.Process{Stdout: &kept}, Output: format}, token))
		require.NotContains(t, kept.String(), "secret")
		if format == console.Text {
			require.Contains(t, kept.String(), `the link that opens it: CLAUDEOPS_STATE_DIR='/var/lib/it'\''s' claudeops env`)
		}
	}

	screen, typed, err := pty.Open()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, errors.Join(typed.Close(), screen.Close())) })
	require.NoError(t, r.Print(&console.Console{Process: program.Process{Stdout: typed}, Output: console.Text}, token))
	seen := bufio.NewScanner(screen)
	for range 2 {
		require.True(t, seen.Scan())
	}
	require.Contains(t, seen.Text(), "Pages     http://127.0.0.1:8230?token=secret", "they come first")
	require.True(t, seen.Scan())
	require.Contains(t, seen.Text(), "http://127.0.0.1:8233?token=secret")
}
