package local

import (
	"bufio"
	"errors"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestUpSaysHowFarAgentsMayGo checks that `up` promises no repairs without credentials.
func TestUpSaysHowFarAgentsMayGo(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load(clitest.Environment(t))
	require.NoError(t, err)
	require.Equal(t, "repair, up to tier 3, unless a chain is a dry run", extent(cfg, ""))
	require.Equal(t, "cannot work yet", extent(cfg, "agents find no credentials"))
}

// TestUpRefusesAnOldCLI ends with one sentence before anything starts.
func TestUpRefusesAnOldCLI(t *testing.T) {
	t.Parallel()
	scenario := claudesim.Play(claudesim.Always(claudesim.Say("fine")))
	scenario.ClaimedVersion = "1.0.50"
	path, err := claudesim.Install(t.TempDir(), scenario)
	require.NoError(t, err)
	got := clitest.Of(Commands).Run(t, clitest.Environment(t, "CLAUDEOPS_CLAUDE="+path), "up", "--port", "0", "--ui-port", "0", "--web-port", "0")
	require.Equal(t, program.ExitFailure, got.Code)
	require.Empty(t, got.Stdout)
	require.Contains(t, got.Stderr, "claudeops: claude 1.0.50 at "+path+" is too old: update it to 2.1.332")
}

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
