//go:build soak

package systemtest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// TestSoakGatesManyChains parks many chains at gates. Then another worker must handle all answers.
func TestSoakGatesManyChains(t *testing.T) {
	p := parkAndAnswer(t, *soakGates)
	t.Logf("soak: gates: chains=%d chains_lost=0 parked_after=%.0fs worker_memory_each=%.1fKB (%.1f MB in all, %.1f MB without) "+
		"another worker, all answered after %.1f s and right after %.0f s", *soakGates, p.parked.Seconds(),
		(p.full-p.empty)*1024/float64(*soakGates), p.full, p.empty, p.answered.Seconds(), p.ended.Seconds())
}

// brokenDisk implements the activities. Its agent asks for a person every time. Only Temporal is real.
type brokenDisk struct {
	policy escalation.Policy
	opened atomic.Int64
}

func (b *brokenDisk) LoadPolicy(_ context.Context, input activities.LoadPolicyInput) (activities.LoadPolicyResult, error) {
	return activities.LoadPolicyResult{Policy: b.policy, Services: input.Services}, nil
}

func (b *brokenDisk) OpenSession(_ context.Context, input activities.OpenSessionInput) (escalation.AdmissionResult, error) {
	input.Session.ID = b.opened.Add(1)
	input.Session.Sequence = int(input.Session.ID)
	return escalation.AdmissionResult{Session: input.Session}, nil
}

func (b *brokenDisk) CloseSession(context.Context, activities.CloseSessionInput) (brief escalation.IncidentBrief, err error) {
	return brief, nil
}

// KnownIncidents returns none, because no other chain knows the disk.
func (b *brokenDisk) KnownIncidents(context.Context, escalation.KnownIncidents) ([]escalation.Incident, error) {
	return nil, nil
}

func (b *brokenDisk) RecordEvents(context.Context, activities.RecordEventsInput) error { return nil }

func (b *brokenDisk) FindTranscript(context.Context, activities.FindTranscriptInput) (activities.FindTranscriptResult, error) {
	return activities.FindTranscriptResult{Reachable: true}, nil
}

func (b *brokenDisk) RunTier(_ context.Context, input activities.RunTierInput) (activities.RunTierResult, error) {
	verdict := needsPerson()
	verdict.Summary = strings.Repeat("a disk is dying. ", 500)
	return activities.RunTierResult{Report: escalation.Report{
		Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.01}, ReportedSessionID: input.SessionID, Attempts: 1, Verdict: &verdict,
	}}, nil
}

// TestSoakGatesLoop takes one chain through many gates. Neither the history of a run nor the state that it hands to
// the next run may grow without bounds.
func TestSoakGatesLoop(t *testing.T) {
	c := startTemporal(t)
	cfg := siteOf(t, c, environment(t, "claude", "CLAUDEOPS_GATE_TIMEOUT=72h")).cfg
	disk := &brokenDisk{policy: cfg.Policy()}
	for _, queue := range []string{"loop", workflows.AgentsTaskQueue("loop")} {
		work := worker.New(c, queue, worker.Options{})
		work.RegisterWorkflowWithOptions(workflows.EscalationChain, workflow.RegisterOptions{Name: workflows.ChainWorkflow})
		work.RegisterActivityWithOptions(disk, activity.RegisterOptions{})
		require.NoError(t, work.Start())
		t.Cleanup(work.Stop)
	}
	s := &site{t: t, cfg: cfg, client: c}
	s.cfg.Worker.TaskQueue = "loop"
	began := time.Now()
	run := s.startAs("loop", map[string]any{"actor": "ben"})
	for i := 1; i <= *soakLoop; i++ {
		answer := escalation.GateAnswer{GateID: fmt.Sprintf("gate-%d", i), Actor: "anna", Action: escalation.GateFix, Guidance: "again"}
		if i == *soakLoop {
			answer.Action = escalation.GateOverride
		}
		s.resolveOnceOpen("loop", answer)
	}
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeOverridden, chain.Outcome)
	require.Equal(t, *soakLoop, chain.Earlier.Gates+len(chain.Gates))
	require.Equal(t, *soakLoop, chain.Earlier.Sessions+len(chain.Sessions))
	require.InDelta(t, 0.01*float64(*soakLoop), chain.CostUSD, 1e-6)
	runs, longest, largest := s.requireBoundedRuns("loop")
	require.Greater(t, runs, 1, "the chain never went on in a new run")
	t.Logf("soak: gates: a chain of %d gates in %d runs, at most %d events of history each and %d bytes handed on, after %.0f s",
		*soakLoop, runs, longest, largest, time.Since(began).Seconds())
}

// resolveOnceOpen answers at a gate as soon as the gate is open.
func (s *site) resolveOnceOpen(chainID string, answer escalation.GateAnswer) {
	s.t.Helper()
	var err error
	require.Eventually(s.t, func() bool {
		_, err = s.resolve(chainID, answer)
		return err == nil
	}, testTimeout, 10*time.Millisecond, "%s: %v", answer.GateID, err)
}

// requireBoundedRuns replays every run of a chain, the last first, and checks the sizes of its history and its input.
// It returns the number of runs and the largest sizes.
func (s *site) requireBoundedRuns(chainID string) (runs int, longest int64, largest int) {
	s.t.Helper()
	for runID := ""; ; {
		events := s.client.GetWorkflowHistory(s.t.Context(), chainID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		var first *historypb.WorkflowExecutionStartedEventAttributes
		var length int64
		var history historypb.History
		for events.HasNext() {
			event, err := events.Next()
			require.NoError(s.t, err)
			history.Events = append(history.Events, event)
			if started := event.GetWorkflowExecutionStartedEventAttributes(); started != nil {
				first = started
			}
			length = event.GetEventId()
		}
		replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
			DisableDeadlockDetection: true, // on a busy machine it reports workflows that are not blocked
		})
		require.NoError(s.t, err)
		replayer.RegisterWorkflowWithOptions(workflows.EscalationChain, workflow.RegisterOptions{Name: workflows.ChainWorkflow})
		require.NoError(s.t, replayer.ReplayWorkflowHistoryWithOptions(nil, &history, worker.ReplayWorkflowHistoryOptions{
			OriginalExecution: workflow.Execution{ID: chainID, RunID: first.GetOriginalExecutionRunId()},
		}))
		runs++
		longest = max(longest, length)
		largest = max(largest, len(first.GetInput().GetPayloads()[0].GetData()))
		require.Less(s.t, length, int64(3_000))
		require.Less(s.t, largest, 400_000)
		if runID = first.GetContinuedExecutionRunId(); runID == "" {
			return runs, longest, largest
		}
	}
}
