package workflows_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// continueAsNew runs the chain in w until it continues as new. It returns the input of the new run and its size in
// bytes.
func (w *world) continueAsNew(t *testing.T, input workflows.ChainInput) (workflows.ChainInput, int) {
	t.Helper()
	_, err := w.run(t, input)
	var anew *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &anew)
	require.Equal(t, workflows.ChainWorkflow, anew.WorkflowType.Name)
	var next workflows.ChainInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(anew.Input, &next))
	require.NoError(t, next.Validate())
	return next, len(anew.Input.GetPayloads()[0].GetData())
}

// continuedWorld returns a world for a run that continues a chain.
func continuedWorld(t *testing.T, tiers ...tierScript) *world {
	t.Helper()
	w := newGatedWorld(t, tiers...)
	w.env.SetContinuedExecutionRunID("the-run-before")
	return w
}

// longHistory makes the chain's history long once the given time has passed.
func (w *world) longHistory(after time.Duration) {
	w.env.RegisterDelayedCallback(func() { w.env.SetCurrentHistoryLength(2_000) }, after)
}

// savedAtAGate returns the input with which a chain continues as new, and the world of its first run. Its Tier 2 has
// timed out during a call. It continues as new after the first reminder of its gate.
func savedAtAGate(t *testing.T) (workflows.ChainInput, *world) {
	t.Helper()
	w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03), ends(escalation.SessionTimedOut))
	w.policy.Gate.Remind = []escalation.Duration{escalation.Duration(time.Hour), escalation.Duration(6 * time.Hour)}
	w.policy.ChainBudgetUSD = 5
	w.inFlight = []activities.ToolCall{{Number: 3, Name: "Bash", Input: "docker restart web", State: activities.ToolRunning}}
	w.longHistory(70 * time.Minute)
	saved, _ := w.continueAsNew(t, workflows.ChainInput{Actor: "ben", Prompt: "the shop is slow", Services: []string{"web"}})
	require.Equal(t, 1, saved.Carried.Reminded)
	return saved, w
}

// TestChainGoesOnInANewRun starts a run from saved state. It checks that answers at the gate have the same effect as in
// the first run.
func TestChainGoesOnInANewRun(t *testing.T) {
	t.Parallel()
	answer := func(t *testing.T, action escalation.GateAction) (*world, escalation.Chain, workflows.ChainInput) {
		t.Helper()
		saved, before := savedAtAGate(t)
		w := continuedWorld(t, concludes(escalation.VerdictResolved, 0.5))
		w.policy = escalation.Policy{} // the new run must not read the policy again
		w.opened = append(w.opened, before.opened...)
		saved.Carried.FirstRunID = "run-1"
		w.env.SetStartTime(saved.Carried.State.Gates[0].OpenedAt.Add(70 * time.Minute))
		gate := w.gateAfter(t, time.Minute)
		w.answerAfter(2*time.Hour, said(action, "look at the proxy"))
		result, err := w.run(t, saved)
		require.NoError(t, err)
		require.Equal(t, "gate-1", gate.ID)
		require.Equal(t, "ben", result.Actor)
		require.Equal(t, saved.Carried.State.StartedAt.UTC(), result.StartedAt.UTC())
		all := make([]escalation.Event, 0, len(before.events)+len(w.events))
		all = append(append(all, before.events...), w.events...)
		for i := range all {
			all[i].At = result.Events[i].At // some times were decoded from JSON, so only their form differs
		}
		requireRecorded(t, result.Events, all)
		require.Equal(t, "docker restart web", saved.Carried.InFlight[0].Input)
		for _, recorded := range w.recorded {
			require.Equal(t, "run-1", recorded.FirstRunID, "it is still the same chain")
		}
		for _, closed := range w.closed {
			require.Equal(t, "run-1", closed.FirstRunID)
		}
		return w, result, saved
	}
	t.Run("continue_session", func(t *testing.T) {
		t.Parallel()
		w, result, saved := answer(t, escalation.GateContinue)
		require.Equal(t, escalation.OutcomeResolved, result.Outcome)
		require.Len(t, result.Sessions, 3)
		require.InDelta(t, 0.78, result.CostUSD, 1e-9)
		require.Equal(t, saved.Carried.State.Sessions[1].SessionID, w.ran[0].ParentSessionID)
		require.Equal(t, saved.Carried.InFlight, w.ran[0].InFlight)
		require.True(t, w.ran[0].Continues)
		require.InDelta(t, 0.28, w.requests[0].ChainSpentUSD, 1e-9, "the budget knows what the first run spent")
		require.InDelta(t, 5, w.ran[0].Policy.ChainBudgetUSD, 0)
	})
	t.Run("fix", func(t *testing.T) {
		t.Parallel()
		w, result, saved := answer(t, escalation.GateFix)
		require.Equal(t, escalation.OutcomeResolved, result.Outcome)
		require.Equal(t, saved.Carried.State.Sessions[0].SessionID, w.ran[0].ParentSessionID)
		require.Equal(t, "look at the proxy", w.ran[0].Guidance)
		require.Equal(t, "the shop is slow", w.ran[0].Request)
		require.Equal(t, []string{"web"}, w.ran[0].Services)
	})
	t.Run("override", func(t *testing.T) {
		t.Parallel()
		_, result, _ := answer(t, escalation.GateOverride)
		require.Equal(t, escalation.OutcomeOverridden, result.Outcome)
	})
	t.Run("nobody answers", func(t *testing.T) {
		t.Parallel()
		saved, _ := savedAtAGate(t)
		w := continuedWorld(t)
		w.env.SetStartTime(saved.Carried.State.Gates[0].OpenedAt.Add(70 * time.Minute))
		result, err := w.run(t, saved)
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeAborted, result.Outcome)
		gate := result.Gates[0]
		require.InDelta(t, 72, gate.Answer.At.Sub(gate.OpenedAt).Hours(), 0.01, "the clock goes on from the opening")
		require.Len(t, messagesOf(result.Events, escalation.EventGateReminder), 2, "the reminder of the first run is not repeated")
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		saved, _ := savedAtAGate(t)
		w := continuedWorld(t)
		w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Hour)
		_, err := w.run(t, saved)
		require.True(t, temporal.IsCanceledError(err), "got %v", err)
		require.Equal(t, escalation.OutcomeAborted, w.query(t).Outcome)
	})
	t.Run("a signal in the first task of the new run", func(t *testing.T) {
		t.Parallel()
		saved, _ := savedAtAGate(t)
		w := continuedWorld(t)
		w.replyAfter(0, said(escalation.GateOverride, ""))
		result, err := w.run(t, saved)
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeOverridden, result.Outcome)
	})
}

// TestChainOfManyGates runs a chain through 75 gates. It checks that the state for the next run does not grow, whatever
// the agents say.
func TestChainOfManyGates(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	const gates, perRun = 75, 25
	wordy := func(_ *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		return escalation.Report{
			Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.01}, ReportedSessionID: input.SessionID, Attempts: 1,
			Verdict: &escalation.Verdict{Status: escalation.VerdictNeedsHuman, Summary: strings.Repeat("very ", 10_000), Services: []string{"web"}},
		}, nil
	}
	input := workflows.ChainInput{Actor: "ben"}
	var w *world
	runs, most, sessions, answered := 0, 0, 0, 0
	for {
		runs++
		w = newGatedWorld(t, repeated(perRun+1, wordy)...)
		if input.Carried != nil {
			w.env.SetContinuedExecutionRunID("the-run-before")
		}
		inRun := 0
		var next func()
		next = func() {
			inRun, answered = inRun+1, answered+1
			answer := saidAt(fmt.Sprintf("gate-%d", answered), escalation.GateFix, strings.Repeat("再", escalation.MaxGuidance))
			if answered == gates {
				answer = saidAt(fmt.Sprintf("gate-%d", answered), escalation.GateOverride, "")
			}
			got := &reply{}
			w.answerNow(got, answer)
			if answered == gates {
				return
			}
			if inRun == perRun {
				w.longHistory(time.Minute)
				return
			}
			w.env.RegisterDelayedCallback(next, time.Hour)
		}
		w.env.RegisterDelayedCallback(next, time.Hour)
		if (gates-1)/perRun+1 == runs {
			break
		}
		var size int
		input, size = w.continueAsNew(t, input)
		most = max(most, size)
		sessions += len(w.ran)
		state := input.Carried.State
		require.LessOrEqual(t, len(state.Sessions), 20)
		require.LessOrEqual(t, len(state.Gates), 20)
		require.LessOrEqual(t, len(state.Events), 100)
		require.Equal(t, answered+1, state.Earlier.Gates+len(state.Gates), "those that are left out are counted")
		require.Equal(t, sessions, state.Earlier.Sessions+len(state.Sessions))
		require.Less(t, size, 400_000)
		for _, gate := range state.Gates[:len(state.Gates)-1] {
			require.Less(t, len(gate.Answer.Guidance), 2_000, "of guidance that was followed, the beginning")
		}
	}
	result, err := w.run(t, input)
	require.NoError(t, err)
	encoded, err := json.Marshal(result.Gates)
	require.NoError(t, err)
	require.Less(t, len(encoded), 400_000, "nor does it pile up in the run")
	closed := messagesOf(w.events, escalation.EventGateClosed)
	require.Greater(t, len(closed), 10)
	for _, message := range closed[:len(closed)-1] {
		require.Contains(t, message, strings.Repeat("再", escalation.MaxGuidance), "the records have all of it")
	}
	require.Equal(t, escalation.OutcomeOverridden, result.Outcome)
	require.Equal(t, gates, answered)
	require.Equal(t, gates, result.Earlier.Gates+len(result.Gates))
	require.Equal(t, fmt.Sprintf("gate-%d", gates), result.Gates[len(result.Gates)-1].ID)
	require.InDelta(t, 0.01*gates, result.CostUSD, 1e-6)
	t.Logf("gates: %d gates in %d runs, at most %d bytes handed to the next run (%d sessions)", gates, runs, most, sessions+len(w.ran))
}

// TestAnswerIsTakenAlong answers a gate before the chain begins to wait at it, while the history is long. It checks
// that the new run acts on the answer.
func TestAnswerIsTakenAlong(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(*world){
		"a fix":           func(w *world) { w.answerAfter(30*time.Second, said(escalation.GateFix, "now")) },
		"a higher tier":   func(w *world) { w.signalAfter(30*time.Second, `{"to_tier":3,"guidance":"now"}`) },
		"a continuation":  func(w *world) { w.replyAfter(30*time.Second, said(escalation.GateContinue, "now")) },
		"a fix by signal": func(w *world) { w.replyAfter(30*time.Second, said(escalation.GateFix, "now")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03), ends(escalation.SessionTimedOut))
			w.recordTakes = time.Minute
			w.longHistory(10 * time.Second)
			send(w)
			saved, _ := w.continueAsNew(t, workflows.ChainInput{})
			require.NotNil(t, saved.Carried.State.Gates[0].Answer)

			again := continuedWorld(t, concludes(escalation.VerdictResolved, 0.5))
			again.opened = append(again.opened, w.opened...)
			result, err := again.run(t, saved)
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome)
			require.Equal(t, "now", again.ran[0].Guidance)
			require.Equal(t, name == "a continuation", again.ran[0].Continues)
			if name == "a higher tier" {
				require.Equal(t, escalation.TierFullRepair, again.ran[0].Tier)
			}
			require.Len(t, messagesOf(result.Events, escalation.EventGateClosed), 1)
		})
	}
}

// runAs runs the chain in a run whose workflow info is modified by change.
func (w *world) runAs(t *testing.T, input workflows.ChainInput, change func(*workflow.Info)) error {
	t.Helper()
	w.answer(t)
	w.env.RegisterWorkflowWithOptions(func(ctx workflow.Context) (escalation.Chain, error) {
		change(workflow.GetInfo(ctx))
		return workflows.EscalationChain(ctx, input)
	}, workflow.RegisterOptions{Name: "changed"})
	w.env.ExecuteWorkflow("changed")
	require.True(t, w.env.IsWorkflowCompleted())
	return w.env.GetWorkflowError()
}

func byCron(info *workflow.Info) { info.CronSchedule = "@daily" }

// TestCarriedIsNotForCron checks that runs started by cron or by a retry refuse an input with Carried. They have a
// previous run, but did not continue from it as new.
func TestCarriedIsNotForCron(t *testing.T) {
	t.Parallel()
	saved, _ := savedAtAGate(t)
	for name, change := range map[string]func(*workflow.Info){
		"cron": byCron, "retry": func(info *workflow.Info) { info.Attempt = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := continuedWorld(t)
			require.ErrorContains(t, w.runAs(t, saved, change), "carried is not for people")
			require.Empty(t, w.query(t).Gates)
		})
	}
}

// TestChainOfCronKeepsItsRun checks that a cron workflow does not continue as new, even if its history is long.
func TestChainOfCronKeepsItsRun(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	w.longHistory(time.Minute)
	w.answerAfter(time.Hour, said(escalation.GateOverride, ""))
	require.NoError(t, w.runAs(t, workflows.ChainInput{}, byCron))
	require.Equal(t, escalation.OutcomeOverridden, w.query(t).Outcome)
}

// detailsAfter returns the details that the Web UI shows after delay. The result is filled in at that time.
func (w *world) detailsAfter(t *testing.T, delay time.Duration) *string {
	t.Helper()
	shown := new(string)
	w.env.RegisterDelayedCallback(func() {
		var metadata sdkpb.WorkflowMetadata
		encoded, err := w.env.QueryWorkflow("__temporal_workflow_metadata")
		if err == nil {
			err = encoded.Get(&metadata)
		}
		if err != nil {
			t.Errorf("query the metadata: %v", err)
		}
		*shown = metadata.GetCurrentDetails()
	}, delay)
	return shown
}

// TestGateIsShownInANewRun checks that the Web UI shows the open gate of a chain that has continued as new.
func TestGateIsShownInANewRun(t *testing.T) {
	t.Parallel()
	saved, _ := savedAtAGate(t)
	saved.Carried.State.Earlier = escalation.Earlier{Sessions: 40, Cost: escalation.Cost{CostUSD: 1.2}}
	w := continuedWorld(t)
	w.env.SetStartTime(saved.Carried.State.Gates[0].OpenedAt.Add(70 * time.Minute))
	shown := w.detailsAfter(t, time.Minute)
	w.replyAfter(time.Hour, said(escalation.GateOverride, ""))
	_, err := w.run(t, saved)
	require.NoError(t, err)
	require.Contains(t, *shown, "**gate-1 is open** (tier 2)")
	require.Contains(t, *shown, "--action continue_session")
	require.Contains(t, *shown, "… 40 earlier sessions, $1.20: see the records")
}

// TestUnknownCostCountsInANewRun checks that the unknown cost of sessions of earlier runs counts against the budget.
func TestUnknownCostCountsInANewRun(t *testing.T) {
	t.Parallel()
	saved, _ := savedAtAGate(t)
	saved.Carried.State.Earlier = escalation.Earlier{Sessions: 40, UnknownUSD: 0.5}
	w := continuedWorld(t, concludes(escalation.VerdictResolved, 0.1))
	w.answerAfter(time.Hour, said(escalation.GateFix, ""))
	_, err := w.run(t, saved)
	require.NoError(t, err)
	require.InDelta(t, saved.Carried.State.CostUSD+0.5, w.requests[0].ChainSpentUSD, 1e-9)
}

func TestCarriedIsNotForPeople(t *testing.T) {
	t.Parallel()
	saved, _ := savedAtAGate(t)
	w := newGatedWorld(t)
	_, err := w.run(t, saved)
	var refused *temporal.ApplicationError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, workflows.ErrorTypeInput, refused.Type())
	require.Equal(t, "carried is not for people: a chain gives it to itself when it goes on in a new run", refused.Message())
	require.Empty(t, w.events)
	require.Empty(t, w.ran)
	require.Empty(t, w.query(t).Gates, "nor is it shown as the chain's own state")

	c := newCalendar(t, endsWith(escalation.OutcomeHealthy))
	_, err = c.run(t, saved)
	require.ErrorContains(t, err, "carried is not for people")
}

// TestChainWithSomethingUnderWayDoesNotGoOnAnew checks that a chain does not continue as new while a notification is
// being sent.
func TestChainWithSomethingUnderWayDoesNotGoOnAnew(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	people := w.listen()
	people.fail = errAway
	w.env.OnWorkflow(workflows.DeliveryWorkflow, mock.Anything, mock.Anything).Return(nil)
	w.policy.Gate.Remind = []escalation.Duration{escalation.Duration(10 * time.Second), escalation.Duration(4 * time.Hour)}
	w.longHistory(0)
	saved, _ := w.continueAsNew(t, workflows.ChainInput{})
	require.Equal(t, 1, saved.Carried.Reminded, "the first reminder was on its way when the opening was passed on")
	waited := saved.Carried.State.Events[len(saved.Carried.State.Events)-1].At.Sub(saved.Carried.State.Gates[0].OpenedAt)
	require.GreaterOrEqual(t, waited, 20*time.Second, "only when all were passed on")
	require.Equal(t, []escalation.NotificationKind{escalation.NotifyNeedsHuman}, saved.Carried.Told)
	require.NotEmpty(t, messagesOf(w.events, escalation.EventNotNotified), "what was not told is recorded")
}

// TestChainWithAVeryLongHistoryGoesOnAnew checks that a chain with a very long history passes on pending notifications,
// adds an event for them, and continues as new.
func TestChainWithAVeryLongHistoryGoesOnAnew(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	people := w.listen()
	people.fail = errAway
	w.env.OnWorkflow(workflows.DeliveryWorkflow, mock.Anything, mock.Anything).Return(nil)
	w.env.RegisterDelayedCallback(func() { w.env.SetCurrentHistoryLength(10_000) }, 10*time.Second)
	saved, _ := w.continueAsNew(t, workflows.ChainInput{})
	untold := messagesOf(w.events, escalation.EventNotNotified)
	require.Equal(t, []string{"not everybody was told that a person is needed: it was still being sent; it is tried again for an hour"}, untold)
	require.NotNil(t, saved.Carried.State.OpenGate())
}

// TestCarriedReadsBack checks that encoding and decoding the state for the next run loses nothing.
func TestCarriedReadsBack(t *testing.T) {
	t.Parallel()
	saved, _ := savedAtAGate(t)
	encoded, err := json.Marshal(saved)
	require.NoError(t, err)
	var again workflows.ChainInput
	require.NoError(t, json.Unmarshal(encoded, &again))
	require.NoError(t, again.Validate())
	require.Equal(t, saved, again)
}

// TestCarriedByANewerRelease reads state from a newer release, which has unknown fields.
func TestCarriedByANewerRelease(t *testing.T) {
	t.Parallel()
	saved, _ := savedAtAGate(t)
	encoded, err := json.Marshal(saved)
	require.NoError(t, err)
	newer := strings.NewReplacer(
		`"policy":{`, `"policy":{"new":1,`, `"state":{`, `"state":{"new":{},`, `"step":{`, `"step":{"new":[],`,
	).Replace(string(encoded))
	require.Equal(t, 3, strings.Count(newer, `"new":`))
	var again workflows.ChainInput
	require.NoError(t, json.Unmarshal([]byte(newer), &again))
	require.NoError(t, again.Validate())
	require.Equal(t, saved, again)

	typed := strings.Replace(string(encoded), `{`, `{"new":1,`, 1)
	require.NoError(t, json.Unmarshal([]byte(typed), &again))
	require.ErrorContains(t, again.Validate(), `unknown field "new"`, "people are told of what they misspell")
}

// TestCarriedThatCannotBeRead checks that state which this worker cannot decode fails only the workflow task. Temporal
// retries the task, so that a worker that can decode the state continues the chain.
func TestCarriedThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := continuedWorld(t)
	w.answer(t)
	w.env.ExecuteWorkflow(underTest, json.RawMessage(`{"carried":{"step":"of another shape"}}`))
	var panicked *temporal.PanicError
	require.ErrorAs(t, w.env.GetWorkflowError(), &panicked)
	require.ErrorContains(t, panicked, "what the run before has handed over cannot be read")
	require.Empty(t, w.events)
}
