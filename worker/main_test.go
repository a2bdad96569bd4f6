package main

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// asWorker is the environment variable that makes the test binary run as the worker.
const asWorker = "CLAUDEOPS_TEST_WORKER"

// TestMain runs the tests. If asWorker is set, it runs the worker instead. The test binary is also the stand-in for
// claude.
func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		_ = os.Unsetenv(asWorker)
		main()
		return
	}
	os.Exit(m.Run())
}

// environment returns a valid environment with the variables in more. It has no claude, and no Temporal server
// listens at its address.
func environment(t *testing.T, more ...string) []string {
	t.Helper()
	home := t.TempDir()
	return append([]string{
		"PATH=" + home, "HOME=" + home, simtest.WorkersUser, "CLAUDEOPS_STATE_DIR=" + filepath.Join(home, "state"), "TEMPORAL_ADDRESS=127.0.0.1:1", "CLAUDEOPS_SANDBOX=off",
	}, more...)
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"), 0o600))
	tests := map[string]struct {
		env  []string
		code program.ExitCode
		want []string
	}{
		"invalid configuration, every problem": {
			[]string{"CLAUDEOPS_MAX_TIER=9", "CLAUDEOPS_TIER1_TIMEOUT=soon"}, program.ExitUsage, []string{"CLAUDEOPS_MAX_TIER", "CLAUDEOPS_TIER1_TIMEOUT"},
		},
		"unreadable prompt file":       {[]string{"CLAUDEOPS_PROMPT=" + filepath.Join(dir, "none.md")}, program.ExitUsage, []string{"CLAUDEOPS_PROMPT", "none.md"}},
		"broken policy":                {[]string{"CLAUDEOPS_POLICY_FILE=" + file}, program.ExitUsage, []string{"CLAUDEOPS_POLICY_FILE", file}},
		"no address of Temporal":       {[]string{"TEMPORAL_ADDRESS=http://localhost:7233"}, program.ExitUsage, []string{"TEMPORAL_ADDRESS", "without http://"}},
		"claude missing":               {[]string{"CLAUDEOPS_CLAUDE=claude"}, program.ExitFailure, []string{"no executable called claude on the PATH"}},
		"claude not executable":        {[]string{"CLAUDEOPS_CLAUDE=" + file}, program.ExitFailure, []string{file, "it is not executable"}},
		"state directory not writable": {[]string{"CLAUDEOPS_STATE_DIR=" + filepath.Join(file, "state")}, program.ExitFailure, []string{"CLAUDEOPS_STATE_DIR", "not a directory"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var printed, logged bytes.Buffer
			require.Equal(t, tt.code, execute(t.Context(), program.Process{Environ: environment(t, tt.env...), Stdout: &printed, Stderr: &logged}), logged.String())
			for _, want := range tt.want {
				require.Contains(t, logged.String(), want)
			}
			require.Empty(t, printed.String())
		})
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args           []string
		code           program.ExitCode
		stdout, stderr string
	}{
		"help":          {args: []string{"--help"}, code: program.ExitOK, stdout: help},
		"short help":    {args: []string{"-h"}, code: program.ExitOK, stdout: help},
		"version":       {args: []string{"--version"}, code: program.ExitOK, stdout: "worker " + program.Version() + "\n"},
		"a flag":        {args: []string{"--tier"}, code: program.ExitUsage, stderr: "worker: it takes no arguments, and was given \"--tier\" (see `worker --help`)\n"},
		"a word":        {args: []string{"up\x1b[2J"}, code: program.ExitUsage, stderr: "worker: it takes no arguments, and was given \"up\\x1b[2J\" (see `worker --help`)\n"},
		"an empty one":  {args: []string{""}, code: program.ExitUsage, stderr: "worker: it takes no arguments, and was given \"\" (see `worker --help`)\n"},
		"not only help": {args: []string{"-v", "--help"}, code: program.ExitUsage, stderr: "worker: it takes no arguments, and was given \"-v\" (see `worker --help`)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			// The configuration is not read, so that --help works with an invalid configuration.
			require.Equal(t, tt.code, execute(t.Context(), program.Process{
				Args: tt.args, Environ: []string{"CLAUDEOPS_MAX_TIER=9"}, Stdout: &stdout, Stderr: &stderr,
			}))
			require.Equal(t, tt.stdout, stdout.String())
			require.Equal(t, tt.stderr, stderr.String())
		})
	}
}

func TestRunNeedsTemporal(t *testing.T) {
	t.Parallel()
	claude, err := claudesim.Install(t.TempDir(), claudesim.Play(claudesim.Always(claudesim.Say("never"))))
	require.NoError(t, err)
	var printed, logged bytes.Buffer
	require.Equal(t, program.ExitFailure, execute(t.Context(), program.Process{
		Environ: environment(t, "CLAUDEOPS_CLAUDE="+claude), Stdout: &printed, Stderr: &logged,
	}))
	require.Contains(t, logged.String(), "connect to Temporal at 127.0.0.1:1")
	require.Contains(t, logged.String(), "set TEMPORAL_ADDRESS")
}

// TestRunRefusesAStandby starts the worker on a database that takes no writes.
func TestRunRefusesAStandby(t *testing.T) {
	t.Parallel()
	claude, err := claudesim.Install(t.TempDir(), claudesim.Play(claudesim.Always(claudesim.Say("never"))))
	require.NoError(t, err)
	standby := postgrestest.Start(t).StartStandby(t)
	var printed, logged bytes.Buffer
	require.Equal(t, program.ExitFailure, execute(t.Context(), program.Process{
		Environ: environment(t, "CLAUDEOPS_CLAUDE="+claude, "CLAUDEOPS_DATABASE_URL="+standby.URL("postgres")), Stdout: &printed, Stderr: &logged,
	}))
	require.Contains(t, logged.String(), "/postgres takes no writes, because the server is a standby or read-only")
}

// TestRunDrainsOnSignal sends SIGTERM to a real worker process during a tier that ends in time. It checks that the tier
// is not interrupted. The server requires a token, like the server of `claudeops up`. The worker finds the token in the
// state directory.
func TestRunDrainsOnSignal(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	marker := filepath.Join(t.TempDir(), "started")
	claude, err := claudesim.Install(t.TempDir(), claudesim.Play(claudesim.Always(
		claudesim.Bash("touch "+marker+"; sleep 2"),
		claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}))))
	require.NoError(t, err)
	logger := slog.New(slog.DiscardHandler)
	state := t.TempDir()
	lock, err := supervisor.LockLocal(state)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lock.Close()) })
	server, err := embedded.Start(t.Context(), embedded.Options{NoUI: true, Token: lock.Token, Logger: logger})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	local := supervisor.LocalServer{Address: server.Address(), Token: lock.Token}
	require.NoError(t, lock.Announce(local))
	c, err := client.DialContext(t.Context(), local.ClientOptions(client.Options{Logger: log.NewStructuredLogger(logger)}))
	require.NoError(t, err)
	t.Cleanup(c.Close)

	self, err := os.Executable()
	require.NoError(t, err)
	worker := exec.CommandContext(t.Context(), self)
	worker.Env = environment(t, asWorker+"=1", "PATH="+os.Getenv("PATH"), "CLAUDEOPS_CLAUDE="+claude,
		"CLAUDEOPS_STATE_DIR="+state, "TEMPORAL_ADDRESS="+server.Address(), "CLAUDEOPS_TIER1_TOOLS=Bash",
		"CLAUDEOPS_POLICY_FILE="+simtest.OpenPolicy(t))
	worker.Stderr = t.Output()
	require.NoError(t, worker.Start())
	t.Cleanup(func() { _ = worker.Process.Kill() })

	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "claudeops"}, workflows.ChainWorkflow)
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, err := os.Stat(marker); return err == nil }, time.Minute, 20*time.Millisecond)
	require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
	require.NoError(t, worker.Wait())

	// The tier has ended, so its activity is complete. Only the next step may be pending.
	described, err := c.DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
	require.NoError(t, err)
	for _, pending := range described.GetPendingActivities() {
		require.NotEqual(t, "RunTier", pending.GetActivityType().GetName(), "the tier was interrupted")
	}
	launches, err := claudesim.Launches(filepath.Dir(claude))
	require.NoError(t, err)
	require.Len(t, launches, 1)
}
