package systemtest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// cycle creates a schedule that starts a cycle now, and returns the run of the cycle.
func (s *site) cycle(schedule string, input any) client.WorkflowRun {
	s.t.Helper()
	soon := time.Duration(time.Now().Unix()) * time.Second % (24 * time.Hour)
	interval := client.ScheduleIntervalSpec{Every: 24 * time.Hour, Offset: (soon + 12*time.Hour) % (24 * time.Hour)} // due in 12 hours
	handle, err := s.client.ScheduleClient().Create(s.t.Context(), client.ScheduleOptions{
		ID: schedule, Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{interval}}, TriggerImmediately: true,
		Action: &client.ScheduleWorkflowAction{
			ID: workflows.CycleWorkflowID(schedule), Workflow: workflows.CycleWorkflow, Args: []any{input}, TaskQueue: s.cfg.Worker.TaskQueue,
		},
	})
	require.NoError(s.t, err)
	var id string
	require.Eventually(s.t, func() bool {
		described, err := handle.Describe(s.t.Context())
		if err == nil && len(described.Info.RecentActions) > 0 {
			id = described.Info.RecentActions[0].StartWorkflowResult.WorkflowID
		}
		return id != ""
	}, testTimeout, 100*time.Millisecond, "the schedule started nothing")
	return s.client.GetWorkflow(s.t.Context(), id, "")
}

// chainOf returns the run of a cycle's chain.
func (s *site) chainOf(cycle client.WorkflowRun) client.WorkflowRun {
	return s.client.GetWorkflow(s.t.Context(), "chain-"+cycle.GetID()[len("cycle-"):], "")
}

// TestChainsOfCycles runs three cycles of schedules on the real server. One ends with its chain, which works in a
// repository. One ends while its chain waits and continues. One fails because its chain refuses the input.
func TestChainsOfCycles(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	repository := t.TempDir()
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "take long"}, claudesim.Bash("while [ -e hold ]; do sleep 0.1; done"), claudesim.Conclude(allWell())),
		concluding("haiku", allWell())))
	s := startSite(t, temporalServer, environment(t, claude,
		"CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_REPOSITORIES="+repository))

	run := s.cycle("well", map[string]any{"repository": filepath.Base(repository)})
	var result workflows.CycleResult
	require.NoError(t, run.Get(t.Context(), &result))
	require.Equal(t, escalation.OutcomeHealthy, result.Outcome)
	require.Equal(t, s.chainOf(run).GetID(), result.ChainID)
	launches := simtest.Launches(t, claude)
	require.Len(t, launches, 1)
	require.Equal(t, repository, launches[0].Dir, "the agent works in the repository")
	recordHistory(t, s, run, "cycle")

	hold := filepath.Join(s.cfg.Claude.WorkDir, "hold")
	require.NoError(t, os.WriteFile(hold, nil, 0o600))
	run = s.cycle("waiting", map[string]any{"prompt": "take long"})
	simtest.AwaitLaunches(t, claude, 2, testTimeout)
	waiting := s.chainOf(run)
	require.NoError(t, s.client.SignalWorkflow(t.Context(), waiting.GetID(), "", workflows.WaitingSignal, nil))
	require.NoError(t, run.Get(t.Context(), &result))
	require.True(t, result.Waiting)
	require.Empty(t, s.query(waiting).Outcome, "the chain goes on")
	require.NoError(t, os.Remove(hold))
	chain, err := s.finish(waiting)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeHealthy, chain.Outcome)
	recordHistory(t, s, run, "cycle_waiting")
	recordHistory(t, s, waiting, "detached")

	run = s.cycle("refused", map[string]any{"repository": "/etc"})
	require.ErrorContains(t, run.Get(t.Context(), nil), `failed: repository "/etc" is none that CLAUDEOPS_REPOSITORIES lists`)
	require.Len(t, simtest.Launches(t, claude), 2)
	refused := s.chainOf(run)
	events, err := s.records().Events(t.Context(), refused.GetID())
	require.NoError(t, err)
	require.Len(t, events, 1, "nobody looks on, so it is recorded")
	recordHistory(t, s, run, "cycle_failed")
	recordHistory(t, s, refused, "refused")
}
