//go:build linux

package supervisor_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// `make gates` runs these at full length.
var (
	gatesChains = flag.Int("gates.chains", 40, "chains that are parked at gates at a time")
	gatesLoop   = flag.Int("gates.loop", 90, "gates that one chain goes through")
)

// TestGatesManyChains parks chains at gates, starts another worker, and has all of them answered, in
// each of the four ways.
func TestGatesManyChains(t *testing.T) {
	t.Parallel()
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "Continue this session"}, claudesim.Conclude(resolved())).Named("continued"),
		claudesim.On(claudesim.Match{Prompt: "in a new session, please"}, claudesim.Conclude(allWell())).Named("fixed"),
		concluding("haiku", needsPerson())))
	c, address := startTemporalAt(t)
	environ := environment(t, claude, "CLAUDEOPS_GATE_TIMEOUT=72h", "CLAUDEOPS_MAX_CONCURRENT_AGENTS=6", "CLAUDEOPS_LOG_LEVEL=warn")
	s := siteOf(t, c, environ)
	first := startWorker(t, environ, address)
	_, err := s.finish(s.startAs("warm-up", map[string]any{"prompt": "in a new session, please", "dry_run": true}))
	require.NoError(t, err)
	empty := residentMemory(t, first.Process.Pid)

	began := time.Now()
	for i := range *gatesChains {
		s.startAs(gatedChain(i), map[string]any{"actor": "ben"})
	}
	for i := range *gatesChains {
		s.awaitGate(gatedChain(i), "gate-1")
	}
	parked, full := time.Since(began), residentMemory(t, first.Process.Pid)
	first.kill(t)
	startWorker(t, environ, address)

	began = time.Now()
	s.answerAll(*gatesChains)
	answered := time.Since(began)
	for i := range *gatesChains {
		s.requireAnswered(i)
	}
	t.Logf("gates: %d chains parked after %.0f s, %.1f KB of worker memory each (%.1f MB in all, %.1f MB without); "+
		"another worker, all answered after %.1f s and right after %.0f s", *gatesChains, parked.Seconds(),
		(full-empty)*1024/float64(*gatesChains), full, empty, answered.Seconds(), time.Since(began).Seconds())
}

func gatedChain(i int) string { return fmt.Sprintf("gated-%04d", i) }

// gatedAnswers are what chains are answered, in turn, and gatedOutcomes how they end by that.
var (
	gatedAnswers = []escalation.GateAnswer{
		{GateID: "gate-1", Actor: "anna", Action: escalation.GateOverride},
		{GateID: "gate-1", Actor: "anna", Action: escalation.GateAbort},
		{GateID: "gate-1", Actor: "anna", Action: escalation.GateFix, Guidance: "in a new session, please"},
		{GateID: "gate-1", Actor: "anna", Action: escalation.GateContinue},
	}
	gatedOutcomes = []escalation.Outcome{
		escalation.OutcomeOverridden, escalation.OutcomeAborted, escalation.OutcomeHealthy, escalation.OutcomeResolved,
	}
)

// answerAll answers at the gates of all chains, some at a time.
func (s *site) answerAll(chains int) {
	s.t.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < chains; i = int(next.Add(1)) - 1 {
				answer := gatedAnswers[i%len(gatedAnswers)]
				resolution, err := s.resolve(gatedChain(i), answer)
				if err != nil || resolution.Action != answer.Action {
					s.t.Errorf("chain %d: %+v, %v", i, resolution, err)
				}
			}
		})
	}
	all.Wait()
}

// requireAnswered checks that a chain ended as it was answered, and that it is recorded so.
func (s *site) requireAnswered(i int) {
	s.t.Helper()
	chain, err := s.finish(s.client.GetWorkflow(s.t.Context(), gatedChain(i), ""))
	require.NoError(s.t, err)
	require.Equal(s.t, gatedOutcomes[i%len(gatedOutcomes)], chain.Outcome, "chain %d: %s %+v", i, chain.Reason, chain.Last())
	require.Len(s.t, chain.Gates, 1)
	require.Equal(s.t, "anna", chain.Gates[0].Answer.Actor)
	if i < 8 { // the records of each are opened anew, and 1,000 of them tell no more
		requireRecorded(s.t, s, chain)
	}
}

// residentMemory is what a process has in memory, in megabytes.
func residentMemory(t *testing.T, pid int) float64 {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if size, found := strings.CutPrefix(line, "VmRSS:"); found {
			kilobytes, err := strconv.Atoi(strings.Fields(size)[0])
			require.NoError(t, err)
			return float64(kilobytes) / 1024
		}
	}
	require.Fail(t, "the process tells no memory")
	return 0
}

// brokenDisk are activities whose agent asks for a person every time. Only Temporal is real.
type brokenDisk struct {
	policy escalation.Policy
	opened atomic.Int64
}

func (b *brokenDisk) LoadPolicy(context.Context) (activities.LoadPolicyResult, error) {
	return activities.LoadPolicyResult{Policy: b.policy}, nil
}

func (b *brokenDisk) OpenSession(_ context.Context, input activities.OpenSessionInput) (escalation.Opening, error) {
	input.Session.ID = b.opened.Add(1)
	input.Session.Sequence = int(input.Session.ID)
	return escalation.Opening{Session: input.Session}, nil
}

func (b *brokenDisk) CloseSession(context.Context, activities.CloseSessionInput) error { return nil }

func (b *brokenDisk) RecordEvents(context.Context, activities.RecordEventsInput) error { return nil }

func (b *brokenDisk) FindTranscript(context.Context, activities.FindTranscriptInput) (activities.FindTranscriptResult, error) {
	return activities.FindTranscriptResult{Reachable: true}, nil
}

func (b *brokenDisk) RunTier(_ context.Context, input activities.RunTierInput) (activities.RunTierResult, error) {
	verdict := needsPerson()
	verdict.Summary = strings.Repeat("a disk is dying. ", 500)
	return activities.RunTierResult{Report: escalation.Report{
		Status: escalation.SessionCompleted, CostUSD: 0.01, ReportedSessionID: input.SessionID, Attempts: 1, Verdict: &verdict,
	}}, nil
}

// TestGatesLoop takes one chain through many gates. The history of none of its runs may grow without
// bounds, nor what one run hands to the next.
func TestGatesLoop(t *testing.T) {
	t.Parallel()
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
	for i := 1; i <= *gatesLoop; i++ {
		answer := escalation.GateAnswer{GateID: fmt.Sprintf("gate-%d", i), Actor: "anna", Action: escalation.GateFix, Guidance: "again"}
		if i == *gatesLoop {
			answer.Action = escalation.GateOverride
		}
		s.resolveOnceOpen("loop", answer)
	}
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeOverridden, chain.Outcome)
	require.Equal(t, *gatesLoop, chain.Earlier.Gates+len(chain.Gates))
	require.Equal(t, *gatesLoop, chain.Earlier.Sessions+len(chain.Sessions))
	require.InDelta(t, 0.01*float64(*gatesLoop), chain.CostUSD, 1e-6)
	runs, longest, largest := s.requireBoundedRuns("loop")
	require.Greater(t, runs, 1, "the chain never went on in a new run")
	t.Logf("gates: a chain of %d gates in %d runs, at most %d events of history each and %d bytes handed on, after %.0f s",
		*gatesLoop, runs, longest, largest, time.Since(began).Seconds())
}

// resolveOnceOpen answers at a gate as soon as that is open.
func (s *site) resolveOnceOpen(chainID string, answer escalation.GateAnswer) {
	s.t.Helper()
	var err error
	require.Eventually(s.t, func() bool {
		_, err = s.resolve(chainID, answer)
		return err == nil
	}, testTimeout, 10*time.Millisecond, "%s: %v", answer.GateID, err)
}

// requireBoundedRuns looks at every run of a chain, the last first, and replays it.
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
			DisableDeadlockDetection: true, // it takes a machine that is busy for a workflow that blocks
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

// TestFaultRealCLIContinuedAtAGate lets Tier 2 time out in a tool call, kills the worker, and goes on
// with the session. That fails, and is not offered again.
func TestFaultRealCLIContinuedAtAGate(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, version claudesim.Version, cli string) {
		marker := filepath.Join(t.TempDir(), "started")
		command := "touch " + marker + "; sleep 300"
		failed := escalation.Verdict{Status: escalation.VerdictFailed, Summary: "it does not answer", Services: []string{"jellyfin"}}
		api := simtest.StartAPI(t, claudesim.Play(
			claudesim.On(claudesim.Match{Prompt: "Continue this session"}, claudesim.Conclude(failed)),
			claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Conclude(asksFor(2))),
			claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Bash(command))))
		c, address := startTemporalAt(t)
		environ := environment(t, cli, append(toolsAllowed(), "ANTHROPIC_BASE_URL="+api.URL(), "ANTHROPIC_API_KEY=not-a-key",
			"CLAUDEOPS_TIER2_TOOLS=Bash", "CLAUDEOPS_TIER2_ALLOWED_TOOLS=Bash", "CLAUDEOPS_TIER2_TIMEOUT=75s", "CLAUDEOPS_GATE_TIMEOUT=72h")...)
		s := siteOf(t, c, environ)
		first := startWorker(t, environ, address)
		run := s.start(nil)
		gate := s.awaitGate(run.GetID(), "gate-1")
		require.FileExists(t, marker)
		require.Equal(t, escalation.GateTimedOut, gate.Source)
		require.NotNil(t, gate.Continuation, gate.NoContinuation)
		interrupted := s.query(run).Sessions[1]
		require.Equal(t, interrupted.SessionID, interrupted.ReportedSessionID, "a time-out carries its session")
		first.kill(t)
		asked := len(api.Requests())

		startWorker(t, environ, address)
		answered := time.Now()
		_, err := s.resolve(run.GetID(), escalation.GateAnswer{
			GateID: "gate-1", Action: escalation.GateContinue, Actor: "anna", Guidance: "the proxy was moved to host seven",
		})
		require.NoError(t, err)
		second := s.awaitGate(run.GetID(), "gate-2")
		requests := api.Requests()
		require.Greater(t, len(requests), asked)
		next := requests[asked]
		require.Equal(t, requests[0].Prompts()[0], next.Prompts()[0], "the old conversation goes on")
		require.Contains(t, next.Text(), "jellyfin answers 502", "with what Tier 1 found")
		require.Contains(t, next.Prompt(), "Continue this session and complete all that is left")
		require.Contains(t, next.Prompt(), "the proxy was moved to host seven")
		require.Contains(t, next.Prompt(), command, "it names the call whose effect is unknown")
		require.Equal(t, escalation.GateFailed, second.Source)
		require.Nil(t, second.Continuation)
		require.Contains(t, second.NoContinuation, "was tried, and failed")
		_, err = s.resolve(run.GetID(), escalation.GateAnswer{GateID: "gate-2", Action: escalation.GateContinue, Actor: "anna"})
		require.ErrorContains(t, err, "gate-2 offers no continue_session")
		_, err = s.resolve(run.GetID(), escalation.GateAnswer{GateID: "gate-2", Action: escalation.GateOverride, Actor: "anna"})
		require.NoError(t, err)
		chain, err := s.finish(run)
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeOverridden, chain.Outcome)
		require.Len(t, chain.Sessions, 3)
		require.Equal(t, interrupted.ID, chain.Sessions[2].ParentID)
		requireRecordedBut(t, s, chain, escalation.EventGateRefused)
		t.Logf("gates: real CLI %s, tier 2 timed out in a call, worker killed, continued with %d messages and the guidance; failed %.0f s later, and not offered again",
			version, len(next.Messages), time.Since(answered).Seconds())
	})
}

// requireRecordedBut is requireRecorded where the records hold events of a kind that the chain does not know.
func requireRecordedBut(t *testing.T, s *site, chain escalation.Chain, kind escalation.EventKind) {
	t.Helper()
	records := s.records()
	var known []escalation.Event
	require.Eventually(t, func() bool { // by the worker, a moment later
		events, err := records.Events(t.Context(), chain.ID)
		known = slices.DeleteFunc(slices.Clone(events), func(event escalation.Event) bool { return event.Kind == kind })
		return err == nil && len(known) < len(events)
	}, testTimeout, 20*time.Millisecond, "what was refused is recorded")
	require.Equal(t, asJSON(t, chain.Events), asJSON(t, asShown(known, chain.Events)))
}
