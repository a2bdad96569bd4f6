package cli

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestAttemptsOnARealServer follows a chain whose model is unreachable. It also shows a chain that waits for a worker
// while the only worker is busy.
func TestAttemptsOnARealServer(t *testing.T) {
	t.Parallel()
	seen := filepath.Join(t.TempDir(), "seen") // each attempt waits until the test creates this file
	environ := startInstallation(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "take long"}, claudesim.Bash("sleep 300")),
		claudesim.Always(claudesim.Bash("until rm "+seen+"; do sleep 0.1; done"), claudesim.Fail(claudesim.StatusRefused, ""))),
		"CLAUDEOPS_MAX_CONCURRENT_AGENTS=1", "CLAUDEOPS_API_RETRIES=0", "CLAUDEOPS_DRAIN_TIMEOUT=1s",
		"CLAUDEOPS_TIER1_TOOLS=Bash")
	b := scheduleBench{t: t, environ: environ}
	shows := func(id, want string) string {
		t.Helper()
		pattern := regexp.MustCompile(want)
		var shown string
		require.Eventually(t, func() bool {
			shown = starter(t, environ, "chain", id).Stdout
			return pattern.MatchString(shown)
		}, 2*time.Minute, 250*time.Millisecond, want)
		return shown
	}

	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var printed transcript
	left := make(chan program.ExitCode, 1)
	go func() {
		left <- execute(ctx, &console.Console{
			Process: program.Process{
				Args: []string{"run", "--id", "unreachable", "--wait"}, Environ: environ, Stdin: strings.NewReader(""),
				Stdout: &printed, Stderr: &printed,
			},
			Clock: time.Now, Patience: clitest.Timeout,
		})
	}()
	printed.sees(t, "attempt 1, by worker process ")
	require.NoError(t, os.WriteFile(seen, nil, 0o600))
	printed.sees(t, "attempt 2, by worker process ") // not "attempt 2 starts at": the pause may end before the follower queries again
	require.NoError(t, os.WriteFile(seen, nil, 0o600))
	printed.sees(t, "attempt 3 starts at ") // the pause before attempt 3 is half a minute
	shown := shows("unreachable", `    attempt 3 starts at .*; attempt 2 ended: `)
	require.NotContains(t, shown, "  0.0s  … running")
	leave()
	<-left
	for _, once := range []string{
		"attempt 1, by worker process ", "attempt 1 ended: ", "attempt 2, by worker process ", "attempt 2 ended: ", "attempt 3 starts at ",
	} {
		require.Equal(t, 1, strings.Count(printed.text(), once), printed.text())
	}

	b.must("cancel", "unreachable")
	b.must("run", "--id", "busy", "--prompt", "take long")
	shows("busy", "    attempt 1, by worker process ")
	b.must("run", "--id", "queued", "--prompt", "take long")
	shows("queued", "    attempt 1 waits for a free worker on task queue claudeops-agents\n")
}
