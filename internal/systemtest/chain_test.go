package systemtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// These tests run whole chains on a real Temporal server, with the stand-in for claude.

// concluding returns a turn in which the model gives its verdict and does nothing else.
func concluding(model string, verdict escalation.Verdict) claudesim.Turn {
	return claudesim.On(claudesim.Match{Model: model}, claudesim.Conclude(verdict)).Named(model)
}

func asksFor(tier escalation.Tier) escalation.Verdict {
	return escalation.Verdict{
		Status: escalation.VerdictEscalate, Summary: "jellyfin answers 502", Services: []string{"jellyfin"}, RecommendedTier: tier,
	}
}

// whole returns verdict with all fields that a handoff requires.
func whole(verdict escalation.Verdict) escalation.Verdict {
	verdict.Checks = []escalation.CheckResult{{Service: "jellyfin", CheckType: "http", Status: escalation.CheckDown}}
	verdict.Findings, verdict.Remediation = "the upstream is gone", "one restart, to no avail"
	return verdict
}

func allWell() escalation.Verdict {
	return escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}
}

// excess returns a verdict with as many services, and as long names, as allowed. The names consist of the character
// that grows most when it is encoded as JSON.
func excess() escalation.Verdict {
	verdict := escalation.Verdict{Status: escalation.VerdictNeedsHuman, Summary: "so many"}
	for i := range escalation.MaxServices {
		number := strconv.Itoa(i)
		verdict.Services = append(verdict.Services, number+strings.Repeat("<", escalation.MaxServiceName-len(number)))
	}
	return verdict
}

func resolved() escalation.Verdict {
	return escalation.Verdict{Status: escalation.VerdictResolved, Summary: "restarted jellyfin", Services: []string{"jellyfin"}}
}

func TestChains(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	climb := []claudesim.Turn{
		concluding("haiku", asksFor(2)), concluding("sonnet", asksFor(3)), concluding("opus", resolved()),
	}
	tests := map[string]struct {
		turns []claudesim.Turn
		input map[string]any
		env   []string
		want  escalation.Outcome
		check func(t *testing.T, chain escalation.Chain)
	}{
		"three_tiers": {
			turns: climb, want: escalation.OutcomeResolved,
			check: func(t *testing.T, chain escalation.Chain) {
				require.Len(t, chain.Sessions, 3)
				for i, model := range []string{"haiku", "sonnet", "opus"} {
					require.Equal(t, model, chain.Sessions[i].Model)
				}
				require.Equal(t, escalation.ContinuityResume, chain.Sessions[2].Continuity)
				require.Equal(t, "v1.2.3", chain.Sessions[2].WorkerVersion)
			},
		},
		"healthy": {
			turns: []claudesim.Turn{concluding("haiku", allWell())},
			want:  escalation.OutcomeHealthy,
		},
		"dry_run": {turns: climb, input: map[string]any{"dry_run": true}, want: escalation.OutcomeSuppressed},
		"max_tier": {
			turns: climb, env: []string{"CLAUDEOPS_MAX_TIER=2"}, want: escalation.OutcomeNeedsHuman,
			check: func(t *testing.T, chain escalation.Chain) { require.Len(t, chain.Sessions, 2) },
		},
		"handoff": {
			turns: []claudesim.Turn{
				concluding("haiku", whole(asksFor(2))), concluding("sonnet", whole(asksFor(3))), concluding("opus", resolved()),
			},
			env: []string{"CLAUDEOPS_CONTINUITY=handoff"}, want: escalation.OutcomeResolved,
			check: func(t *testing.T, chain escalation.Chain) {
				require.Len(t, chain.Sessions, 3, "nobody is asked for what the verdicts say")
				require.Equal(t, escalation.ContinuityHandoff, chain.Sessions[1].Continuity)
				require.Equal(t, escalation.ReasonConfigured, chain.Sessions[1].ContinuityReason)
			},
		},
		"verdict_repaired": {
			turns: []claudesim.Turn{
				claudesim.On(claudesim.Match{Prompt: "verdict of this session is missing"}, claudesim.Conclude(allWell())),
				claudesim.Always(claudesim.Conclude(allWell())).Failing(claudesim.Fault{OmitStructured: true}),
			},
			want: escalation.OutcomeHealthy,
			check: func(t *testing.T, chain escalation.Chain) {
				require.Len(t, chain.Sessions, 1, "the repair turn is the same session")
			},
		},
		"verdict_never_given": {
			turns: []claudesim.Turn{
				claudesim.Always(claudesim.Conclude(allWell())).Failing(claudesim.Fault{OmitStructured: true}),
			},
			want: escalation.OutcomeFailed,
			check: func(t *testing.T, chain escalation.Chain) {
				require.Equal(t, escalation.VerdictFailed, chain.Sessions[0].Verdict.Status)
				require.Contains(t, chain.Sessions[0].Verdict.Summary, "even when asked again")
			},
		},
		"excessive_verdict": {
			turns: []claudesim.Turn{concluding("haiku", excess())}, want: escalation.OutcomeNeedsHuman,
			check: func(t *testing.T, chain escalation.Chain) {
				require.Len(t, chain.Services, escalation.MaxServices, "the result keeps what the lists cannot hold")
			},
		},
		"unknown_conversation": {
			turns: climb, input: map[string]any{"resume_from": map[string]any{"session_id": "4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11"}},
			want: escalation.OutcomeFailed,
			check: func(t *testing.T, chain escalation.Chain) {
				require.Equal(t, escalation.SessionTranscriptLost, chain.Sessions[0].Status)
				require.Contains(t, chain.Sessions[0].Error, "4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11")
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claude := simtest.Install(t, claudesim.Play(tt.turns...))
			// Each test has its own task queue, so that no other test's worker runs its chain.
			s := startSite(t, temporalServer, environment(t, claude, append(tt.env, "CLAUDEOPS_TASK_QUEUE=chains_"+name)...))
			run := s.start(tt.input)
			chain, err := s.finish(run)
			require.NoError(t, err)
			require.Equal(t, tt.want, chain.Outcome, "%s %+v", chain.Reason, chain.Last().Verdict)
			require.Equal(t, chain, s.query(run), "the query of an ended chain is its result")
			requireRecorded(t, s, chain)
			requireExplained(t, s, run, chain)
			if tt.check != nil {
				tt.check(t, chain)
			}
			recordHistory(t, s, run, name)
		})
	}
}

// TestWorkersTellTheirVersion checks the identities that both workers of a process report to Temporal.
func TestWorkersTellTheirVersion(t *testing.T) {
	t.Parallel()
	c := startTemporal(t)
	s := startSite(t, c, environment(t, simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Conclude(allWell()))))))
	queue := s.cfg.Worker.TaskQueue
	for name, kind := range map[string]enumspb.TaskQueueType{
		queue: enumspb.TASK_QUEUE_TYPE_WORKFLOW, workflows.AgentsTaskQueue(queue): enumspb.TASK_QUEUE_TYPE_ACTIVITY,
		workflows.TalksTaskQueue(queue): enumspb.TASK_QUEUE_TYPE_ACTIVITY,
	} {
		want := fmt.Sprintf("%d@host-1 claudeops v1.2.3", os.Getpid())
		require.Eventually(t, func() bool {
			described, err := c.DescribeTaskQueue(t.Context(), name, kind)
			return err == nil && len(described.Pollers) > 0 && described.Pollers[0].Identity == want
		}, testTimeout, 50*time.Millisecond, name)
	}
}

// requireRecorded checks that the store holds the same sessions, cost and events as the chain.
func requireRecorded(t *testing.T, s *site, chain escalation.Chain) {
	t.Helper()
	records := s.records()
	sessions, err := records.Chain(t.Context(), chain.ID)
	require.NoError(t, err)
	require.Equal(t, asJSON(t, chain.Sessions), asJSON(t, sessions))
	require.InDelta(t, escalation.TotalCostUSD(sessions), chain.CostUSD, 1e-9)
	events, err := records.Events(t.Context(), chain.ID)
	require.NoError(t, err)
	require.Equal(t, asJSON(t, chain.Events), asJSON(t, asShown(events, chain.Events)))
}

// asShown returns the recorded events. It cuts the messages of gate events where the chain has cut them.
func asShown(recorded, shown []escalation.Event) []escalation.Event {
	recorded = slices.Clone(recorded)
	for i := range recorded {
		recorded[i].FirstRunID = "" // the state of a chain has events of one run only
	}
	for i := range min(len(recorded), len(shown)) {
		beginning, cut := strings.CutSuffix(shown[i].Message, "…")
		if cut && strings.HasPrefix(string(shown[i].Kind), "gate_") && strings.HasPrefix(recorded[i].Message, beginning) {
			recorded[i].Message = shown[i].Message
		}
	}
	return recorded
}

// requireExplained checks the texts in the Web UI: a table of the chain's sessions, and a summary on every activity.
func requireExplained(t *testing.T, s *site, run client.WorkflowRun, chain escalation.Chain) {
	t.Helper()
	var metadata sdkpb.WorkflowMetadata
	s.ask(run, "__temporal_workflow_metadata", &metadata)
	require.Contains(t, metadata.GetCurrentDetails(), escalation.InWords(chain.Outcome))
	for i := range chain.Sessions {
		require.Contains(t, metadata.GetCurrentDetails(), fmt.Sprintf("| #%d | %d | %s |", chain.Sessions[i].ID, chain.Sessions[i].Tier, chain.Sessions[i].Model))
	}
	events := s.client.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil {
			require.NotEmpty(t, event.GetUserMetadata().GetSummary().GetData(), scheduled.GetActivityType().GetName())
		}
	}
}

// asJSON encodes items for comparison. It truncates times to milliseconds, the precision of the records.
func asJSON[T escalation.Session | escalation.Event](t *testing.T, items []T) string {
	t.Helper()
	items = append([]T{}, items...) // encode nil as an empty list
	for i := range items {
		switch item := any(&items[i]).(type) {
		case *escalation.Session:
			item.StartedAt, item.EndedAt = item.StartedAt.Truncate(time.Millisecond).UTC(), item.EndedAt.Truncate(time.Millisecond).UTC()
		case *escalation.Event:
			item.At = item.At.Truncate(time.Millisecond).UTC()
		}
	}
	encoded, err := json.MarshalIndent(items, "", " ")
	require.NoError(t, err)
	return string(encoded)
}

func TestChainRefusesInput(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	claude := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Say("never"))))
	s := startSite(t, temporalServer, environment(t, claude, "CLAUDEOPS_MAX_TIER=2"))
	for name, tt := range map[string]struct {
		input any
		want  string
	}{
		"unknown_field": {json.RawMessage(`{"teir":2}`), `input is not valid: unknown field "teir"`},
		"tier_4":        {json.RawMessage(`{"start_tier":4}`), `start_tier 4 is not a tier: it must be 1, 2 or 3`},
		"a_list":        {json.RawMessage(`[2]`), `input must be a JSON object, not an array`},
		"above_policy":  {json.RawMessage(`{"start_tier":3}`), `start_tier 3 is higher than the highest tier allowed, 2`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := *s
			sub.t = t
			_, err := sub.finish(sub.start(tt.input))
			var refused *temporal.ApplicationError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, tt.want, refused.Message())
			require.True(t, refused.NonRetryable())
		})
	}
	t.Cleanup(func() { require.Empty(t, simtest.Launches(t, claude), "nothing may run") })
}

func TestChainCancelledInATool(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	marker := filepath.Join(t.TempDir(), "started")
	claude := simtest.Install(t, claudesim.Play(
		claudesim.Always(claudesim.Bash("touch "+marker+"; sleep 300"))))
	s := startSite(t, temporalServer, environment(t, claude, "CLAUDEOPS_TIER1_TOOLS=Bash"))
	run := s.start(nil)
	require.Eventually(t, func() bool { _, err := os.Stat(marker); return err == nil }, testTimeout, 50*time.Millisecond)

	require.NoError(t, s.client.CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()))
	_, err := s.finish(run)
	require.True(t, temporal.IsCanceledError(err), "got %v", err)
	described, err := s.client.DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, described.GetWorkflowExecutionInfo().GetStatus())

	chain := s.query(run)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	require.Equal(t, escalation.SessionStopped, chain.Sessions[0].Status)
	requireRecorded(t, s, chain)
	recordHistory(t, s, run, "cancelled")
}

func TestDrainInterruptsAndAnotherWorkerGoesOn(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	marker := filepath.Join(t.TempDir(), "started")
	claude := simtest.Install(t, claudesim.Play(
		// After an interruption the prompt is different, so it can get a different reply.
		claudesim.On(claudesim.Match{Prompt: "ended before its work was done"}, claudesim.Conclude(resolved())),
		claudesim.Always(claudesim.Bash("touch "+marker+"; sleep 300"))))
	environ := environment(t, claude, "CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_DRAIN_TIMEOUT=1s")
	first := startSite(t, temporalServer, environ)
	run := first.start(nil)
	require.Eventually(t, exists(marker), testTimeout, 50*time.Millisecond)
	require.Eventually(t, func() bool { return len(first.heartbeat(run.GetID()).InFlight) > 0 },
		testTimeout, 50*time.Millisecond, "no heartbeat tells of the call")
	require.NoError(t, first.stop())
	described, err := temporalServer.DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
	require.NoError(t, err)
	require.Len(t, described.GetPendingActivities(), 1)
	require.Contains(t, described.GetPendingActivities()[0].GetLastFailure().GetMessage(), "the worker shut down",
		"Temporal must be told, and not have to find out by itself")

	second := startSite(t, temporalServer, environ)
	chain, err := second.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Len(t, chain.Sessions, 1, "the same session went on")
	require.Equal(t, 2, chain.Sessions[0].Attempts)
	require.Equal(t, escalation.ContinuityResume, chain.Sessions[0].Continuity)
	require.Equal(t, escalation.ReasonInterrupted, chain.Sessions[0].ContinuityReason)
	launches := simtest.Launches(t, claude)
	require.Len(t, launches, 2)
	require.Contains(t, launches[1].Stdin, "sleep 300", "the prompt must name the call that was in flight")
	requireRecorded(t, second, chain)
	recordHistory(t, second, run, "drained")
}
