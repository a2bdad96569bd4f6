package cli

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/cli/operate"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// fleet returns what `workers` lists.
func fleet(t *testing.T, environ []string) operate.Fleet {
	t.Helper()
	listed := starter(t, environ, "workers", "-o", "json")
	require.Equal(t, program.ExitOK, listed.Code, listed.Stderr)
	var found operate.Fleet
	require.NoError(t, json.Unmarshal([]byte(listed.Stdout), &found))
	return found
}

// startAnother starts another worker in an installation. The worker stops at the end of the test.
func startAnother(t *testing.T, environ []string) {
	t.Helper()
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	logger := (&console.Console{Process: program.Process{Stderr: t.Output()}}).QuietLogger()
	options, err := supervisor.ConnectionOptions(environ, cfg, logger)
	require.NoError(t, err)
	options.WorkerHeartbeatInterval = time.Second // the first report has no slots
	c, err := supervisor.Connect(t.Context(), options)
	require.NoError(t, err)
	s, err := supervisor.New(t.Context(), cfg, supervisor.Environment{Environ: environ, Host: "host-2", Version: "v0.2.0", Logger: logger})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, c, options.Namespace) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, s.Close())
		c.Close()
	})
}

// TestWorkersAndVersions lists the workers of two versions. It replays a chain of the first version, moves the chain to
// the second version, and makes the second version current.
func TestWorkersAndVersions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	claude, err := claudesim.Install(t.TempDir(), claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "Continue this session"}, claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictResolved, Summary: "the lock is gone",
		})),
		claudesim.Always(claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictNeedsHuman, Summary: "may the lock be removed?"}))))
	require.NoError(t, err)
	first := startInstalled(t, claude, "CLAUDEOPS_GATE_TIMEOUT=1h", "CLAUDEOPS_DEPLOYMENT=ops", "CLAUDEOPS_BUILD_ID=v1")
	second := slices.Concat(first, []string{"CLAUDEOPS_BUILD_ID=v2"})

	require.Eventually(t, func() bool {
		found := fleet(t, first)
		return len(found.Workers) == 1 && len(found.Workers[0].Queues) == 2 && len(found.Versions) == 1
	}, clitest.Timeout, clitest.Look)
	found := fleet(t, first)
	one := found.Workers[0]
	require.Equal(t, "host-1", one.Host)
	require.Equal(t, []string{"claudeops", "claudeops-agents"}, one.Queues)
	require.Equal(t, []string{"ops", "v1", string(operate.Running)}, []string{one.Deployment, one.BuildID, string(one.State)})
	require.Equal(t, []operate.Version{{Deployment: "ops", BuildID: "v1", State: operate.Inactive}}, found.Versions)
	require.Contains(t, starter(t, first, "workers").Stdout, "\nNo version is current, so only workers without versions begin chains: see `claudeops workers promote`.\n")

	doctor := starter(t, first, "doctor").Stdout
	require.Contains(t, doctor, "✗ version            no version of deployment ops is current, so its workers begin no chains: start a worker, then run: claudeops workers promote v1\n")
	unknown := starter(t, first, "workers", "promote", "v9")
	require.Equal(t, program.ExitFailure, unknown.Code)
	require.Contains(t, unknown.Stderr, "start a worker of that version, see it in `claudeops workers`, and try again")
	promoted := starter(t, first, "workers", "promote")
	require.Equal(t, program.ExitOK, promoted.Code, promoted.Stderr)
	require.Equal(t, "Version v1 of deployment ops is current: new chains begin in it.\n", promoted.Stdout)

	require.Contains(t, starter(t, second, "doctor").Stdout, "✓ version            v2 of deployment ops; new chains begin in v1\n")

	require.Equal(t, program.ExitOK, starter(t, first, "run", "--id", "parked").Code)
	require.Eventually(t, func() bool {
		return starter(t, first, "gate", "parked", "-o", "json").Code == program.ExitOK && len(chainsAtGates(t, first)) == 1
	}, clitest.Timeout, clitest.Look)
	replayed := starter(t, second, "replay")
	require.Equal(t, program.ExitOK, replayed.Code, replayed.Stdout+replayed.Stderr)
	require.Contains(t, replayed.Stdout, " can continue all 1.\n")
	require.Equal(t, "No chains run.\n", starter(t, second, "replay", "--query", "TemporalWorkflowVersioningBehavior IS NULL").Stdout)

	early := starter(t, first, "chains", "move", "parked", "--to", "v9")
	require.Equal(t, program.ExitFailure, early.Code)
	require.Contains(t, early.Stdout, "start a worker of that version, see it in `claudeops workers`, and try again after a few seconds", early.Stderr)

	startAnother(t, second)
	require.Eventually(t, func() bool {
		found := fleet(t, first)
		return len(found.Workers) == 2 && found.Workers[1].Host == "host-2" && found.Workers[1].MaxAgents != nil && len(found.Versions) == 2
	}, clitest.Timeout, clitest.Look)
	var moved clitest.Result
	require.Eventually(t, func() bool { // the chain's task queue learns of a version a moment after the list of versions does
		moved = starter(t, second, "chains", "move", "--from", "v1")
		return moved.Code == program.ExitOK
	}, clitest.Timeout, clitest.Look, "%+v", &moved)
	require.Equal(t, "Chain parked continues in version v2 with its next step.\n", moved.Stdout)
	require.Equal(t, program.ExitOK, starter(t, first, "gate", "parked", "--action", "continue_session", "--actor", "ada").Code)
	followed := starter(t, first, "watch", "parked")
	require.Contains(t, followed.Stdout, "Outcome: resolved")
	shown := starter(t, first, "chain", "parked", "-o", "json")
	require.Contains(t, shown.Stdout, `"worker_version": "v0.2.0"`, "the worker of the second version continued the session")

	promoted = starter(t, second, "workers", "promote")
	require.Equal(t, program.ExitOK, promoted.Code, promoted.Stderr)
	require.Contains(t, promoted.Stdout, "Roll back with: claudeops workers promote v1\n")
	listed := starter(t, first, "workers").Stdout
	require.Regexp(t, `host-2 +\d+ +v0\.2\.0 \(v2\) +running +[01] of 2 +\d+s ago +claudeops, claudeops-agents\n`, listed)
	require.Regexp(t, `ops +v2 +current\n`, listed)
	require.Regexp(t, `ops +v1 +draining\n`, listed)
}

// chainsAtGates returns the rows of the chains that are listed as waiting for a person.
func chainsAtGates(t *testing.T, environ []string) []map[string]any {
	t.Helper()
	var rows []map[string]any
	listed := starter(t, environ, "gate", "-o", "json")
	if listed.Code != program.ExitOK || json.Unmarshal([]byte(listed.Stdout), &rows) != nil {
		return nil
	}
	return rows
}
