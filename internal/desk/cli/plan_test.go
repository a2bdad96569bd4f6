package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestPlan starts workflows on plans, and shows, lists, answers and cancels them as chains, beside the worker and
// through a server.
func TestPlan(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	s.environ = append(s.environ, "CLAUDEOPS_TASK_QUEUE="+stageQueue)
	clitest.RecordIncidents(t, s.environ) // the server reads records
	laptop := serveAPI(t, s.environ)

	var run, review operations.Started
	started := atNoon(t, s.environ, "plan", "run", "./docs/Ports & Rules.md", "--repository", "/srv/infra", "--phase", "1,2", "--prompt", "Move it", "-o", "json")
	require.Equal(t, program.ExitOK, started.Code, started.Stderr)
	require.NoError(t, json.Unmarshal([]byte(started.Stdout), &run))
	require.Regexp(t, `^plan-run-ports---rules-[a-z2-7]{8}$`, run.ChainID)
	again := atNoon(t, laptop, "plan", "run", "docs/Ports & Rules.md", "--repository", "infra")
	require.Equal(t, program.ExitFailure, again.Code)
	require.Equal(t, "claudeops: the plan docs/Ports & Rules.md is being carried out already, by "+run.ChainID+
		"; see the running chains with: claudeops chains --running\n", again.Stderr)
	started = atNoon(t, laptop, "plan", "review", "docs/Ports & Rules.md", "--repository", "infra", "-o", "json")
	require.Equal(t, program.ExitOK, started.Code, started.Stderr)
	require.NoError(t, json.Unmarshal([]byte(started.Stdout), &review))

	shown := patientlyShown(t, s, run.ChainID)
	require.Contains(t, shown, "Plan Move it (docs/Ports & Rules.md)\nRun "+run.ChainID+"  waits for a person  $1.34\n")
	require.Contains(t, shown, "open since 2026-03-01 09:55 UTC; answer with: claudeops gate "+run.ChainID+"\n")
	patientlyShown(t, s, review.ChainID)
	require.Eventually(t, func() bool {
		gates, chains := atNoon(t, s.environ, "gate").Stdout, atNoon(t, s.environ, "chains", "--running").Stdout
		return strings.Contains(gates, run.ChainID) && strings.Contains(gates, review.ChainID) &&
			strings.Contains(chains, run.ChainID) && strings.Contains(chains, review.ChainID)
	}, clitest.Timeout, clitest.Look, "the lists lack plans")
	for _, args := range [][]string{
		{"plan", "status", run.ChainID},
		{"plan", "status", run.ChainID, "-o", "json"},
		{"plan", "status", "nobody"},
		{"plan", "run", "/x"},
		{"chain", run.ChainID},
		{"gate"},
		{"gate", run.ChainID},
		{"chains"},
		{"escalate", run.ChainID, "--to", "3"},
	} {
		require.Equal(t, atNoon(t, s.environ, args...), atNoon(t, laptop, args...), args)
	}
	refused := atNoon(t, s.environ, "escalate", run.ChainID, "--to", "3")
	require.Equal(t, program.ExitUsage, refused.Code)
	require.Contains(t, refused.Stderr, "chain "+run.ChainID+": it works on a plan, whose author and reviewer have no higher tier")

	answered := atNoon(t, laptop, "gate", run.ChainID, "--action", "f: use port 8443")
	require.Equal(t, program.ExitOK, answered.Code, answered.Stderr)
	watched := atNoon(t, laptop, "watch", run.ChainID)
	require.Equal(t, program.ExitOK, watched.Code, "an approved plan is a success: %s", watched.Stderr)
	require.Contains(t, watched.Stdout, "Outcome: approved — the reviewer approves the plan\n")
	var status struct {
		State  string
		File   string
		Phases []struct {
			CostPerFixUSD float64 `json:"cost_per_fix_usd"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(atNoon(t, s.environ, "plan", "status", run.ChainID, "-o", "json").Stdout), &status))
	require.Equal(t, string(escalation.OutcomeApproved), status.State)
	require.Equal(t, "docs/Ports & Rules.md", status.File)
	require.Positive(t, status.Phases[0].CostPerFixUSD)
	require.InDelta(t, chaintest.Amended().Plan.Phases[0].CostPerFixUSD, status.Phases[0].CostPerFixUSD, 1e-9)

	cancelled := atNoon(t, s.environ, "cancel", review.ChainID)
	require.Equal(t, program.ExitOK, cancelled.Code, cancelled.Stderr)
	s.plays(t, "chain-work", scene{Chain: chaintest.Working()}, scene{})
	none := atNoon(t, s.environ, "plan", "status", "chain-work")
	require.Equal(t, program.ExitUsage, none.Code)
	require.Contains(t, none.Stderr, "chain chain-work works on no plan; see it with: claudeops chain chain-work")
}

// patientlyShown returns what `plan status` shows, as soon as a worker has answered.
func patientlyShown(t *testing.T, s *stage, id string) (shown string) {
	t.Helper()
	require.Eventually(t, func() bool {
		got := atNoon(t, s.environ, "plan", "status", id)
		shown = got.Stdout
		return got.Code == program.ExitOK
	}, clitest.Timeout, clitest.Look)
	return shown
}

// TestPlanWait follows a plan to its end.
func TestPlanWait(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	s.environ = append(s.environ, "CLAUDEOPS_TASK_QUEUE="+stageQueue)
	ended := make(chan clitest.Result, 1)
	go func() { ended <- atNoon(t, s.environ, "plan", "review", "docs/ports.md", "--id", "own", "--wait") }()
	patientlyShown(t, s, "own")
	answered := atNoon(t, s.environ, "gate", "own", "--action", "f")
	require.Equal(t, program.ExitOK, answered.Code, answered.Stderr)
	got := <-ended
	require.Equal(t, program.ExitOK, got.Code, got.Stderr)
	require.Contains(t, got.Stdout, "Plan review own\ndocs/ports.md\n")
	require.Contains(t, got.Stdout, "the plan  approved")
}
