package systemtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

func needsPerson() escalation.Verdict {
	return escalation.Verdict{Status: escalation.VerdictNeedsHuman, Summary: "a disk is dying", Services: []string{"nas"}}
}

// awaitGate waits until gateID is the chain's open gate, and returns the gate. Temporal must have stored the workflow
// task that opened the gate. A worker can answer the query before that. If the worker then stops, the task is repeated.
func (s *site) awaitGate(chainID, gateID string) escalation.Gate {
	s.t.Helper()
	var gate *escalation.Gate
	require.Eventually(s.t, func() bool {
		stored, err := s.client.DescribeWorkflow(s.t.Context(), chainID, "")
		if err != nil {
			return false
		}
		if state, _ := stored.TypedSearchAttributes.GetKeyword(workflows.GateAttribute); state != workflows.GateOpen {
			return false
		}
		answer, err := s.client.QueryWorkflow(s.t.Context(), chainID, "", workflows.GateQuery)
		return err == nil && answer.Get(&gate) == nil && gate != nil && gate.ID == gateID
	}, testTimeout, 50*time.Millisecond, "chain %s does not come to %s", chainID, gateID)
	return *gate
}

// resolve answers at a gate with an update, and waits for the result.
func (s *site) resolve(chainID string, answer escalation.GateAnswer) (resolution escalation.GateResolution, err error) {
	handle, err := s.client.UpdateWorkflow(s.t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: chainID, UpdateName: workflows.ResolveGate, Args: []any{answer}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(s.t.Context(), &resolution)
	}
	return resolution, err
}

// historyOf counts the events of a chain's run by their type.
func (s *site) historyOf(chainID string) map[enumspb.EventType]int {
	s.t.Helper()
	counts := map[enumspb.EventType]int{}
	events := s.client.GetWorkflowHistory(s.t.Context(), chainID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(s.t, err)
		counts[event.GetEventType()]++
	}
	return counts
}

// TestGateOpensWhileAllAgentsAreBusy lets another chain take the only slot for an agent just before a gate opens. The
// gate still finds the conversation, and offers to continue it.
func TestGateOpensWhileAllAgentsAreBusy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	started, finish := filepath.Join(dir, "started"), filepath.Join(dir, "finish")
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "occupy the slot"}, claudesim.Bash("sleep 300"), claudesim.Conclude(allWell())),
		claudesim.Always(claudesim.Bash("touch "+started+"; until [ -e "+finish+" ]; do sleep 0.05; done"), claudesim.Conclude(needsPerson()))))
	s := startSite(t, startTemporal(t), environment(t, claude, "CLAUDEOPS_GATE_TIMEOUT=72h", "CLAUDEOPS_TIER1_TOOLS=Bash",
		"CLAUDEOPS_MAX_CONCURRENT_AGENTS=1", "CLAUDEOPS_DRAIN_TIMEOUT=1s"))
	parked := s.startAs("gate-while-busy", nil)
	require.Eventually(t, exists(started), testTimeout, 20*time.Millisecond)
	busy := s.startAs("busy", map[string]any{"prompt": "occupy the slot"})
	require.Eventually(t, func() bool { // its agent waits for the slot
		return s.historyOf("busy")[enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED] == 1
	}, testTimeout, 50*time.Millisecond)
	require.NoError(t, os.WriteFile(finish, nil, 0o600))

	gate := s.awaitGate("gate-while-busy", "gate-1")
	require.NotNil(t, gate.Continuation, gate.NoContinuation)
	require.Zero(t, s.historyOf("busy")[enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED], "the other agent is at work")
	for _, run := range []client.WorkflowRun{parked, busy} {
		require.NoError(t, s.client.CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()))
		_, err := s.finish(run)
		require.Error(t, err)
	}
}

// TestChainAtAGateAcrossARestart parks a chain at a gate and sends answers that must be refused. Then it starts
// another worker and continues the session.
func TestChainAtAGateAcrossARestart(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "Continue this session"}, claudesim.Conclude(resolved())).Named("continued"),
		concluding("haiku", asksFor(2)), concluding("sonnet", needsPerson())))
	environ := environment(t, claude, "CLAUDEOPS_GATE_TIMEOUT=72h", "CLAUDEOPS_GATE_APPROVERS=anna,ben", "CLAUDEOPS_GATE_FOUR_EYES=true")
	first := startSite(t, temporalServer, environ)
	run := first.startAs("parked", map[string]any{"actor": "ben"})
	gate := first.awaitGate("parked", "gate-1")
	require.Equal(t, escalation.GateNeedsHuman, gate.Source)
	require.NotNil(t, gate.Continuation, gate.NoContinuation)
	var before map[enumspb.EventType]int
	for before[enumspb.EVENT_TYPE_TIMER_STARTED] == 0 { // then the chain waits, and its history stays the same
		time.Sleep(50 * time.Millisecond)
		before = first.historyOf("parked")
	}

	for actor, want := range map[string]string{
		"mallory": "mallory may not answer: CLAUDEOPS_GATE_APPROVERS does not list that name",
		"ben":     "ben may not answer: whoever starts a chain cannot answer at its gates",
		"":        "actor is empty",
	} {
		_, err := first.resolve("parked", escalation.GateAnswer{GateID: "gate-1", Action: escalation.GateFix, Actor: actor})
		require.ErrorContains(t, err, want)
	}
	after := first.historyOf("parked")
	for _, events := range []map[enumspb.EventType]int{before, after} {
		for _, step := range []enumspb.EventType{ // workflow tasks, which Temporal repeats if a worker is slow
			enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED,
			enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
		} {
			delete(events, step)
		}
	}
	require.Equal(t, before, after, "what is refused leaves no trace in the history")
	requireGateShown(t, first, run)
	require.NoError(t, first.stop(), "the worker records what it has refused before it ends")
	events, err := first.records().Events(t.Context(), "parked")
	require.NoError(t, err)
	var refused []string
	for _, event := range events {
		if event.Kind == escalation.EventGateRefused {
			refused = append(refused, event.Message)
		}
	}
	require.Len(t, refused, 3)
	require.Contains(t, strings.Join(refused, "\n"), `update resolve-gate of "fix" by "mallory" at "gate-1" is refused: mallory may not answer`)

	second := startSite(t, temporalServer, environ)
	resolution, err := second.resolve("parked", escalation.GateAnswer{
		GateID: "gate-1", Action: escalation.GateContinue, Actor: "anna", Guidance: "the disk is replaced",
	})
	require.NoError(t, err)
	require.Equal(t, "tier 2 goes on and keeps what it knows, with the guidance", resolution.Next)
	_, err = second.resolve("parked", escalation.GateAnswer{GateID: "gate-1", Action: escalation.GateAbort, Actor: "anna"})
	require.ErrorContains(t, err, "gate-1 is closed: anna answered continue at ")
	chain, err := second.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	require.Len(t, chain.Sessions, 3)
	again := chain.Sessions[2]
	require.Equal(t, chain.Sessions[1].ID, again.ParentID)
	require.Equal(t, escalation.PurposeContinuation, again.Purpose)
	launches := simtest.Launches(t, claude)
	last := launches[len(launches)-1]
	require.Contains(t, last.Stdin, "the disk is replaced")
	require.Subset(t, last.Args, []string{"--resume", chain.Sessions[1].SessionID, "--fork-session", "--session-id", again.SessionID})
	recordHistory(t, second, run, "gate_continued")
}

// details returns the text that the Web UI shows for the chain's latest run.
func (s *site) details(chainID string) string {
	s.t.Helper()
	answer, err := s.client.QueryWorkflow(s.t.Context(), chainID, "", "__temporal_workflow_metadata")
	require.NoError(s.t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(s.t, answer.Get(&metadata))
	return metadata.GetCurrentDetails()
}

// requireGateShown checks that lists and the Web UI show the chain's open gate.
func requireGateShown(t *testing.T, s *site, run client.WorkflowRun) {
	t.Helper()
	shown := s.details(run.GetID())
	for _, want := range []string{
		"**gate-1 is open** (tier 2)", "tier 2 asks for a person",
		"- `fix` — tier 2 starts fresh", "`continue_session`", "`override`", "`abort`",
		"claudeops gate --action continue_session --guidance '...' --actor NAME " + run.GetID() + "\n",
		"temporal workflow update execute --workflow-id " + run.GetID() + " --name resolve-gate --input " +
			`'{"gate_id":"gate-1","action":"continue_session","guidance":"...","actor":"NAME"}'`,
	} {
		require.Contains(t, shown, want)
	}
	require.Eventually(t, func() bool {
		counted, err := s.client.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Query: countOpenGates().Query + ` AND WorkflowId = "` + run.GetID() + `"`,
		})
		return err == nil && counted.GetCount() == 1
	}, testTimeout, 100*time.Millisecond, "the chain is not listed as one at a gate")
}

// TestChainAtAGateAnsweredBySignal sends an invalid answer before the gate is open, another one while it is open, and
// then a valid one.
func TestChainAtAGateAnsweredBySignal(t *testing.T) {
	t.Parallel()
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "look at the other disk"}, claudesim.Conclude(allWell())).Named("fixed"),
		concluding("haiku", needsPerson())))
	s := startSite(t, startTemporal(t), environment(t, claude, "CLAUDEOPS_GATE_TIMEOUT=72h"))
	run, err := s.client.SignalWithStartWorkflow(t.Context(), "by-signal",
		workflows.ResolveGate, json.RawMessage(`{"gate_id":"gate-1","action":"override","actor":"mallory"}`),
		client.StartWorkflowOptions{TaskQueue: s.cfg.Worker.TaskQueue}, workflows.ChainWorkflow, nil)
	require.NoError(t, err)
	s.awaitGate("by-signal", "gate-1")
	for _, payload := range []string{
		`{"gate_id":"gate-9","action":"fix","actor":"anna"}`,
		`{"gate_id":"gate-1","action":"fix","actor":"anna","guidance":"look at the other disk"}`,
	} {
		require.NoError(t, s.client.SignalWorkflow(t.Context(), "by-signal", "", workflows.ResolveGate, json.RawMessage(payload)))
	}
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeHealthy, chain.Outcome, chain.Reason)
	require.Len(t, chain.Sessions, 2)
	require.Zero(t, chain.Sessions[1].ParentID, "anew, from where Tier 1 began")
	var refused []string
	for _, event := range chain.Events {
		if event.Kind == escalation.EventGateRefused {
			refused = append(refused, event.Message)
		}
	}
	require.Len(t, refused, 2)
	require.Contains(t, refused[0], `"override" by "mallory" at "gate-1" is refused: the chain is at no gate`)
	require.Contains(t, refused[1], `gate "gate-9" is not the one that is asked`)
	requireRecorded(t, s, chain)
	recordHistory(t, s, run, "gate_fixed")
}

// TestChainAtAGateWithoutItsTranscript deletes the transcript as soon as the CLI has ended. The gate must not offer
// to continue the session.
func TestChainAtAGateWithoutItsTranscript(t *testing.T) {
	t.Parallel()
	standIn := simtest.Install(t, claudesim.Play(concluding("haiku", needsPerson())))
	forgetful := filepath.Join(t.TempDir(), "claude")
	require.NoError(t, process.WriteProgram(forgetful, fmt.Appendf(nil,
		"#!/bin/sh\n%s \"$@\"\ncode=$?\nrm -rf \"$CLAUDE_CONFIG_DIR/projects\"\nexit $code\n", standIn)))
	s := startSite(t, startTemporal(t), environment(t, forgetful, "CLAUDEOPS_GATE_TIMEOUT=72h", "CLAUDEOPS_TRANSCRIPTS=none"))
	run := s.startAs("forgotten", nil)
	gate := s.awaitGate("forgotten", "gate-1")
	require.Nil(t, gate.Continuation)
	require.Contains(t, gate.NoContinuation, "its transcript is gone")
	_, err := s.resolve("forgotten", escalation.GateAnswer{GateID: "gate-1", Action: escalation.GateContinue, Actor: "anna"})
	require.ErrorContains(t, err, "gate-1 does not offer to continue: its transcript is gone")
	_, err = s.resolve("forgotten", escalation.GateAnswer{GateID: "gate-1", Action: escalation.GateAbort, Actor: "anna"})
	require.NoError(t, err)
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
}

// TestChainAtAGateThatExpires sends no answer, so that each gate times out.
func TestChainAtAGateThatExpires(t *testing.T) {
	t.Parallel()
	claude := simtest.Install(t, claudesim.Play(concluding("haiku", needsPerson())))
	s := startSite(t, startTemporal(t), environment(t, claude,
		"CLAUDEOPS_GATE_TIMEOUT=3s", "CLAUDEOPS_GATE_REMIND=1s", "CLAUDEOPS_GATE_ON_TIMEOUT=fix"))
	run := s.startAs("expires", nil)
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome, chain.Reason)
	require.Len(t, chain.Gates, 3)
	require.Len(t, chain.Sessions, 3, "twice by itself")
	requireRecorded(t, s, chain)
	recordHistory(t, s, run, "gate_expired")
}

// TestChainGoesOnInANewRunAtAGate floods a chain with signals until its long history makes it continue as new. Then
// it answers at the gate of the new run.
func TestChainGoesOnInANewRunAtAGate(t *testing.T) {
	t.Parallel()
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "Continue this session"}, claudesim.Conclude(allWell())).Named("continued"),
		concluding("haiku", needsPerson())))
	s := startSite(t, startTemporal(t), environment(t, claude, "CLAUDEOPS_GATE_TIMEOUT=72h"))
	run := s.startAs("anew", map[string]any{"actor": "ben"})
	gate := s.awaitGate("anew", "gate-1")
	sent := s.floodUntilAnew("anew", run.GetRunID())

	again := s.awaitGate("anew", "gate-1")
	require.Equal(t, gate, again, "the same gate is open")
	require.Contains(t, s.details("anew"), "**gate-1 is open**", "the Web UI of the new run shows it, too")
	resolution, err := s.resolve("anew", escalation.GateAnswer{GateID: "gate-1", Action: escalation.GateContinue, Actor: "anna"})
	require.NoError(t, err)
	require.Equal(t, "tier 1 goes on and keeps what it knows", resolution.Next)
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeHealthy, chain.Outcome, chain.Reason)
	require.Equal(t, "ben", chain.Actor)
	require.Len(t, chain.Sessions, 2)
	require.Equal(t, escalation.PurposeContinuation, chain.Sessions[1].Purpose)
	require.Positive(t, chain.Earlier.Events)
	records, err := s.records().Events(t.Context(), "anew")
	require.NoError(t, err)
	require.Len(t, records, chain.Earlier.Events+len(chain.Events), "the records have those that the chain has left out")
	require.Equal(t, asJSON(t, chain.Events), asJSON(t, asShown(records[chain.Earlier.Events:], chain.Events)))
	refused := 0
	for _, event := range records {
		if event.Kind == escalation.EventGateRefused {
			refused++
		}
	}
	require.Equal(t, sent, refused, "every signal was taken in, by one run or the other")
	last := s.client.GetWorkflow(t.Context(), "anew", "")
	recordHistory(t, s, last, "gate_anew")
}

// floodUntilAnew sends bursts of invalid signals until the chain has another run, and returns the number of signals.
// It pauses after each burst, because Temporal ends no run while signals for it keep coming.
func (s *site) floodUntilAnew(chainID, runID string) (sent int) {
	s.t.Helper()
	const burst = 300
	for sent < 6_000 {
		var senders errgroup.Group
		senders.SetLimit(16)
		for range burst {
			senders.Go(func() error {
				return s.client.SignalWorkflow(s.t.Context(), chainID, "", workflows.ResolveGate, json.RawMessage(`{"gate_id":"gate-0"}`))
			})
		}
		require.NoError(s.t, senders.Wait())
		sent += burst
		time.Sleep(max(time.Second, time.Duration(sent/burst)*250*time.Millisecond)) // more signals take longer to process
		described, err := s.client.DescribeWorkflowExecution(s.t.Context(), chainID, "")
		require.NoError(s.t, err)
		if described.GetWorkflowExecutionInfo().GetExecution().GetRunId() != runID {
			return sent
		}
	}
	require.Fail(s.t, "the chain never went on in a new run")
	return sent
}

func countOpenGates() *workflowservice.CountWorkflowExecutionsRequest {
	return &workflowservice.CountWorkflowExecutionsRequest{Query: workflows.GateAttribute.GetName() + ` = "open"`}
}
