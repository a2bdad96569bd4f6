package workflows_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// newGatedWorld returns a world whose chains open gates.
func newGatedWorld(t *testing.T, tiers ...tierScript) *world {
	t.Helper()
	w := newWorld(t, tiers...)
	w.policy.Gate = escalation.GatePolicy{Timeout: escalation.Duration(72 * time.Hour), OnTimeout: escalation.GateAbort}
	return w
}

// repeated returns the same script for several tiers.
func repeated(count int, script tierScript) []tierScript {
	scripts := make([]tierScript, count)
	for i := range scripts {
		scripts[i] = script
	}
	return scripts
}

// reply is the result of an answer.
type reply struct {
	accepted   bool
	refusal    string
	resolution escalation.GateResolution
}

// answerAfter sends the update after delay, with the payload that a person types.
func (w *world) answerAfter(delay time.Duration, payload string) *reply {
	got := &reply{}
	w.env.RegisterDelayedCallback(func() { w.answerNow(got, payload) }, delay)
	return got
}

func (w *world) answerNow(got *reply, payload string) {
	w.env.UpdateWorkflow(workflows.ResolveGate, "", &testsuite.TestUpdateCallback{
		OnAccept: func() { got.accepted = true },
		OnReject: func(err error) { got.refusal = err.Error() },
		OnComplete: func(result any, err error) {
			if err != nil {
				got.refusal = err.Error()
			} else if resolution, ok := result.(escalation.GateResolution); ok {
				got.resolution = resolution
			}
		},
	}, json.RawMessage(payload))
}

// replyAfter sends the answer as a signal after delay.
func (w *world) replyAfter(delay time.Duration, payload string) {
	w.env.RegisterDelayedCallback(func() { w.env.SignalWorkflow(workflows.ResolveGate, json.RawMessage(payload)) }, delay)
}

// gateAfter returns the open gate after delay. The result is filled in at that time.
func (w *world) gateAfter(t *testing.T, delay time.Duration) *escalation.Gate {
	t.Helper()
	gate := &escalation.Gate{}
	w.env.RegisterDelayedCallback(func() {
		encoded, err := w.env.QueryWorkflow(workflows.GateQuery)
		if err == nil {
			err = encoded.Get(&gate)
		}
		if err != nil {
			t.Errorf("query the gate: %v", err)
		}
	}, delay)
	return gate
}

func said(action escalation.GateAction, guidance string) string {
	return saidAt("gate-1", action, guidance)
}

func saidAt(gate string, action escalation.GateAction, guidance string) string {
	encoded, _ := json.Marshal(escalation.GateAnswer{GateID: gate, Action: action, Guidance: guidance, Actor: "anna"})
	return string(encoded)
}

func messagesOf(events []escalation.Event, kind escalation.EventKind) []string {
	var messages []string
	for _, event := range events {
		if event.Kind == kind {
			messages = append(messages, event.Message)
		}
	}
	return messages
}

// requireRecorded checks that every visible event is recorded, in order. The records must have the full text of a gate
// event, of which the chain keeps only the beginning.
func requireRecorded(t require.TestingT, shown, recorded []escalation.Event) {
	require.Len(t, recorded, len(shown))
	for i, want := range shown {
		got := recorded[i]
		if beginning, cut := strings.CutSuffix(want.Message, "…"); cut && strings.HasPrefix(string(want.Kind), "gate_") {
			require.Contains(t, got.Message, beginning)
			got.Message = want.Message
		}
		require.Equal(t, want, got)
	}
}

func TestGateShowsWhatAPersonHasToKnow(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03), ends(escalation.SessionTimedOut))
	people := w.listen()
	var attribute []string
	w.env.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
		value, _ := args.Get(0).(temporal.SearchAttributes).GetKeyword(workflows.GateAttribute)
		attribute = append(attribute, value)
	}).Return(nil)
	gate := w.gateAfter(t, time.Hour)
	w.answerAfter(2*time.Hour, said(escalation.GateOverride, "it is known"))
	result, err := w.run(t, workflows.ChainInput{Actor: "ben"})
	require.NoError(t, err)

	interrupted := result.Sessions[1]
	require.Equal(t, "gate-1", gate.ID)
	require.Equal(t, escalation.GateTimedOut, gate.Source)
	require.Equal(t, escalation.TierSafeRepair, gate.Tier)
	require.Equal(t, interrupted.SessionID, gate.SessionID)
	require.Equal(t, "tier 2 ended without a verdict (took too long): what went wrong", gate.Reason)
	require.InDelta(t, 0.28, gate.CostUSD, 1e-9)
	require.Equal(t, []string{
		"tier 1 (haiku), $0.03: asks for a higher tier, found “what it saw”", "tier 2 (sonnet), $0.25: took too long",
	}, gate.Tried)
	require.Equal(t, []escalation.GateAction{
		escalation.GateContinue, escalation.GateFix, escalation.GateRecheck, escalation.GateOverride, escalation.GateAbort,
	}, gate.Options)
	require.Equal(t, &escalation.Continuation{
		SessionID: interrupted.SessionID, Tier: escalation.TierSafeRepair, Status: escalation.SessionTimedOut,
	}, gate.Continuation)
	require.Equal(t, 72*time.Hour, gate.ExpiresAt.Sub(gate.OpenedAt))
	require.Equal(t, escalation.GateAbort, gate.OnTimeout)

	require.Equal(t, escalation.OutcomeOverridden, result.Outcome)
	require.Contains(t, result.Reason, "anna answered override at ")
	require.Equal(t, "ben", result.Actor)
	require.Len(t, result.Gates, 1)
	closing := result.Gates[0].Answer
	require.Equal(t, []any{escalation.GateOverride, "anna", "it is known"}, []any{closing.Action, closing.Actor, closing.Guidance})
	require.InDelta(t, 2*time.Hour.Seconds(), closing.At.Sub(gate.OpenedAt).Seconds(), 10)
	require.Equal(t, result.Events, w.events, "every event that people see is recorded, in order")
	opened := messagesOf(result.Events, escalation.EventGateOpened)
	require.Len(t, opened, 1)
	for _, part := range []string{
		"gate-1 waits for a person at tier 2, after $0.28: tier 2 ended without a verdict (took too long): what went wrong\n", "\nTried: tier 1 (haiku)", "\nAnswers: continue, fix, look again, override, abort",
	} {
		require.Contains(t, opened[0], part)
	}
	closed := messagesOf(result.Events, escalation.EventGateClosed)
	require.Len(t, closed, 1)
	require.Contains(t, closed[0], "guidance: it is known")

	require.True(t, w.closed[1].Release, "what waits repairs nothing, and holds nobody up")
	require.Contains(t, attribute, "open")
	require.Equal(t, "closed", attribute[len(attribute)-1])
	require.Len(t, people.got, 1, "people are told once")
	require.Equal(t, escalation.NotifyNeedsHuman, people.got[0].Kind)
	require.Contains(t, people.got[0].Then, "answer with: claudeops gate "+result.ID)
}

func TestGateOptions(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, action escalation.GateAction, tiers ...tierScript) (*world, escalation.Chain, *reply) {
		t.Helper()
		w := newGatedWorld(t, append([]tierScript{concludes(escalation.VerdictEscalate, 0.03), ends(escalation.SessionTimedOut)}, tiers...)...)
		w.inFlight = []activities.ToolCall{{Number: 3, Name: "Bash", Input: "docker restart web", State: activities.ToolRunning}}
		got := w.answerAfter(time.Hour, said(action, "look at the proxy"))
		result, err := w.run(t, workflows.ChainInput{Prompt: "the shop is slow"})
		require.NoError(t, err)
		require.Empty(t, got.refusal)
		require.True(t, got.accepted)
		require.Equal(t, "gate-1", got.resolution.GateID)
		require.Equal(t, action, got.resolution.Action)
		require.Equal(t, result.Events, w.events)
		requireDistinctKeys(t, result.Events)
		return w, result, got
	}
	t.Run("continue_session", func(t *testing.T) {
		t.Parallel()
		w, result, got := run(t, escalation.GateContinue, concludes(escalation.VerdictResolved, 0.5))
		require.Equal(t, escalation.OutcomeResolved, result.Outcome)
		interrupted, again := result.Sessions[1], result.Sessions[2]
		require.Equal(t, "tier 2 goes on and keeps what it knows, with the guidance", got.resolution.Next)
		require.Equal(t, interrupted.ID, again.ParentID)
		require.Equal(t, interrupted.Tier, again.Tier)
		require.Equal(t, escalation.PurposeContinuation, again.Purpose)
		require.Equal(t, escalation.ContinuityResume, again.Continuity)
		require.Equal(t, escalation.ReasonContinued, again.ContinuityReason)
		require.NotEqual(t, interrupted.SessionID, again.SessionID, "the interrupted conversation stays as it is")
		input := w.ran[2]
		require.Equal(t, interrupted.SessionID, input.ParentSessionID)
		require.Equal(t, escalation.TierSafeRepair, input.ParentTier)
		require.True(t, input.Continues)
		require.Equal(t, w.inFlight, input.InFlight)
		require.Equal(t, "look at the proxy", input.Guidance)
		require.Len(t, messagesOf(result.Events, escalation.EventSessionReused), 1)
		require.Len(t, messagesOf(result.Events, escalation.EventSessionCreated), 2, "a reused session is no new one")
	})
	t.Run("fix", func(t *testing.T) {
		t.Parallel()
		w, result, got := run(t, escalation.GateFix, concludes(escalation.VerdictResolved, 0.5))
		require.Equal(t, "tier 2 starts fresh, with the guidance", got.resolution.Next)
		require.Equal(t, escalation.OutcomeResolved, result.Outcome)
		again := result.Sessions[2]
		require.Equal(t, result.Sessions[0].ID, again.ParentID, "from the checkpoint of the tier before")
		require.Equal(t, escalation.PurposeTier, again.Purpose)
		require.Equal(t, result.Sessions[0].SessionID, w.ran[2].ParentSessionID)
		require.False(t, w.ran[2].Continues)
		require.Empty(t, w.ran[2].InFlight)
		require.Equal(t, "look at the proxy", w.ran[2].Guidance)
		require.False(t, again.Forced)
		require.Empty(t, messagesOf(result.Events, escalation.EventSessionReused))
	})
	t.Run("override", func(t *testing.T) {
		t.Parallel()
		_, result, got := run(t, escalation.GateOverride)
		require.Equal(t, "the state is accepted, and the chain ends", got.resolution.Next)
		require.Equal(t, escalation.OutcomeOverridden, result.Outcome)
	})
	t.Run("abort", func(t *testing.T) {
		t.Parallel()
		_, result, got := run(t, escalation.GateAbort)
		require.Equal(t, "the chain ends", got.resolution.Next)
		require.Equal(t, escalation.OutcomeAborted, result.Outcome)
		require.Contains(t, result.Reason, "anna answered abort")
	})
}

// TestGateRefusesAnswers sends invalid answers. Sent as updates they leave no trace in the chain. Sent as signals each
// leaves an event.
func TestGateRefusesAnswers(t *testing.T) {
	t.Parallel()
	refusals := map[string]string{
		`{"gate_id":"gate-1","action":"go on","actor":"anna"}`:                                                `action "go on" is unknown`,
		`{"gate_id":"gate-1","action":"continue_session","actor":"anna"}`:                                     "gate-1 does not offer to continue: its transcript is gone",
		`{"gate_id":"gate-2","action":"fix","actor":"anna"}`:                                                  `gate "gate-2" is not the one that is asked: it is gate-1`,
		`{"gate_id":"","action":"fix","actor":"anna"}`:                                                        "gate_id is empty",
		`{"gate_id":"gate-1","action":"fix","actor":" "}`:                                                     "actor is empty",
		`{"gate_id":"gate-1","action":"fix"}`:                                                                 "actor is empty",
		`{"gate_id":"gate-1","action":"fix","actor":"anna","guidance":"` + strings.Repeat("a", 10_001) + `"}`: "guidance has 10001 characters",
		`{"gate_id":"gate-1","action":"fix","actor":"anna","hint":"x"}`:                                       `unknown field "hint"`,
		`{"gate_id":"gate-1","action":"fix","actor":"mallory"}`:                                               "mallory may not answer: CLAUDEOPS_GATE_APPROVERS",
		`{"gate_id":"gate-1","action":"fix","actor":"ben"}`:                                                   "ben may not answer: whoever starts a chain",
		`["fix"]`:       "must be a JSON object",
		`{"gate_id":1}`: "gate_id must not be a number",
		`{"gate_id":"gate-1","action":"fix","actor":"` + strings.Repeat("a", 201) + `"}`: "actor has 201 characters",
	}
	newOne := func(t *testing.T) *world {
		t.Helper()
		w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
		w.transcript = func() (bool, error) { return false, nil }
		w.policy.Gate.Approvers, w.policy.Gate.FourEyes = []string{"anna", "ben"}, true
		w.answerAfter(2*time.Hour, said(escalation.GateAbort, ""))
		return w
	}
	t.Run("updates", func(t *testing.T) {
		t.Parallel()
		w := newOne(t)
		got := map[string]*reply{}
		for payload := range refusals {
			got[payload] = w.answerAfter(time.Hour, payload)
		}
		result, err := w.run(t, workflows.ChainInput{Actor: "ben"})
		require.NoError(t, err)
		for payload, want := range refusals {
			require.False(t, got[payload].accepted, payload)
			require.Contains(t, got[payload].refusal, want, payload)
		}
		require.Empty(t, messagesOf(result.Events, escalation.EventGateRefused))
		require.Len(t, result.Gates, 1)
		require.Equal(t, "anna", result.Gates[0].Answer.Actor)
	})
	t.Run("signals", func(t *testing.T) {
		t.Parallel()
		w := newOne(t)
		for payload := range refusals {
			w.replyAfter(time.Hour, payload)
		}
		result, err := w.run(t, workflows.ChainInput{Actor: "ben"})
		require.NoError(t, err)
		told := messagesOf(result.Events, escalation.EventGateRefused)
		require.Len(t, told, len(refusals))
		for _, want := range refusals {
			require.Contains(t, strings.Join(told, "\n"), want)
		}
		require.Equal(t, result.Events, w.events)
		require.Equal(t, escalation.OutcomeAborted, result.Outcome)
	})
}

// TestGateIsAnsweredOnce lets two people answer at the same time, in each order of update and signal.
func TestGateIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	t.Run("two updates", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
		first, second := &reply{}, &reply{}
		w.env.RegisterDelayedCallback(func() {
			w.answerNow(first, `{"gate_id":"gate-1","action":"override","actor":"anna"}`)
			w.answerNow(second, `{"gate_id":"gate-1","action":"abort","actor":"ben"}`)
		}, time.Hour)
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.True(t, first.accepted)
		require.Equal(t, escalation.OutcomeOverridden, result.Outcome)
		require.False(t, second.accepted)
		require.Contains(t, second.refusal, "gate-1 is closed: anna answered override at ")
		require.Equal(t, "anna", result.Gates[0].Answer.Actor)
	})
	t.Run("two signals", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
		w.env.RegisterDelayedCallback(func() {
			w.env.SignalWorkflow(workflows.ResolveGate, json.RawMessage(`{"gate_id":"gate-1","action":"override","actor":"anna"}`))
			w.env.SignalWorkflow(workflows.ResolveGate, json.RawMessage(`{"gate_id":"gate-1","action":"abort","actor":"ben"}`))
		}, time.Hour)
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeOverridden, result.Outcome)
		told := messagesOf(result.Events, escalation.EventGateRefused)
		require.Len(t, told, 1)
		require.Contains(t, told[0], `resolve-gate of "abort" by "ben" at "gate-1" is refused: gate-1 is closed: anna answered override`)
		require.Equal(t, result.Events, w.events)
	})
	t.Run("a stale gate", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t, repeated(2, concludes(escalation.VerdictNeedsHuman, 0.03))...)
		w.answerAfter(time.Hour, said(escalation.GateFix, ""))
		stale := w.answerAfter(2*time.Hour, said(escalation.GateAbort, ""))
		w.answerAfter(3*time.Hour, saidAt("gate-2", escalation.GateOverride, ""))
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Contains(t, stale.refusal, "gate-1 is closed: anna answered fix at")
		require.Equal(t, escalation.OutcomeOverridden, result.Outcome)
		require.Len(t, result.Gates, 2)
	})
}

// TestGateLosesNoAnswer sends answers as soon as the gate is open, while its opening is still being recorded.
func TestGateLosesNoAnswer(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(*world, string){
		"an update": func(w *world, payload string) { w.answerAfter(30*time.Second, payload) },
		"a signal":  func(w *world, payload string) { w.replyAfter(30*time.Second, payload) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03), concludes(escalation.VerdictResolved, 0.5))
			w.recordTakes = time.Minute
			send(w, said(escalation.GateFix, "now"))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome)
			require.Equal(t, "now", w.ran[1].Guidance)
			require.Less(t, result.EndedAt.Sub(result.StartedAt), time.Hour)
		})
	}
}

// TestGateRefusesEarlyAnswers sends answers before the gate that they name is open. The sender cannot have seen the
// gate. It could be an agent that tries to answer its own gate.
func TestGateRefusesEarlyAnswers(t *testing.T) {
	t.Parallel()
	// requireRefused answers the gate an hour after the start, and checks that no earlier answer counts.
	requireRefused := func(t *testing.T, w *world) {
		t.Helper()
		w.answerAfter(time.Hour, said(escalation.GateAbort, ""))
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeAborted, result.Outcome, result.Reason)
		require.Len(t, result.Gates, 1)
		require.Equal(t, "anna", result.Gates[0].Answer.Actor)
		require.InDelta(t, 60, result.Gates[0].Answer.At.Sub(result.StartedAt).Minutes(), 1)
		told := messagesOf(result.Events, escalation.EventGateRefused)
		require.Len(t, told, 1)
		require.Contains(t, told[0], `signal resolve-gate of "fix" by "mallory" at "gate-1" is refused: the chain is at no gate`)
		require.Equal(t, result.Events, w.events)
	}
	const early = `{"gate_id":"gate-1","action":"fix","actor":"mallory"}`
	needsPerson := concludes(escalation.VerdictNeedsHuman, 0.03)
	t.Run("a signal while the tier still runs", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t, needsPerson)
		w.tierTakes = time.Minute
		w.replyAfter(30*time.Second, early)
		requireRefused(t, w)
	})
	t.Run("a signal in the task in which the tier ends", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t)
		w.tiers = []tierScript{func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
			w.env.SignalWorkflow(workflows.ResolveGate, json.RawMessage(early))
			return needsPerson(t, input)
		}}
		requireRefused(t, w)
	})
	t.Run("a signal in the task in which the gate opens", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t, needsPerson)
		w.transcript = func() (bool, error) {
			w.env.SignalWorkflow(workflows.ResolveGate, json.RawMessage(early))
			return true, nil
		}
		requireRefused(t, w)
	})
	t.Run("an update while the tier still runs", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t, needsPerson)
		w.tierTakes = time.Minute
		got := w.answerAfter(30*time.Second, early)
		w.answerAfter(time.Hour, said(escalation.GateAbort, ""))
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.False(t, got.accepted)
		require.Equal(t, "the chain is at no gate", got.refusal)
		require.Equal(t, escalation.OutcomeAborted, result.Outcome)
	})
	t.Run("a signal for the next gate", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t, repeated(2, needsPerson)...)
		w.tierTakes = time.Minute
		next := saidAt("gate-2", escalation.GateOverride, "")
		w.replyAfter(time.Hour, next) // gate-1 is open
		w.answerAfter(2*time.Hour, said(escalation.GateFix, ""))
		w.replyAfter(2*time.Hour+30*time.Second, next) // no gate is open
		w.answerAfter(3*time.Hour, saidAt("gate-2", escalation.GateAbort, ""))
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeAborted, result.Outcome)
		require.Len(t, result.Gates, 2)
		told := messagesOf(result.Events, escalation.EventGateRefused)
		require.Len(t, told, 2)
		require.Contains(t, told[0], `gate "gate-2" is not the one that is asked: it is gate-1`)
		require.Contains(t, told[1], "the chain is at no gate")
	})
	t.Run("to a chain that needs nobody", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t, concludes(escalation.VerdictHealthy, 0.03))
		w.tierTakes = time.Minute
		w.replyAfter(time.Second, said(escalation.GateAbort, ""))
		update := w.answerAfter(time.Second, said(escalation.GateAbort, ""))
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeHealthy, result.Outcome)
		require.Equal(t, "the chain is at no gate", update.refusal)
		told := messagesOf(result.Events, escalation.EventGateRefused)
		require.Len(t, told, 1)
		require.Contains(t, told[0], "the chain is at no gate")
		require.Equal(t, result.Events, w.events)
	})
}

func TestGateRemindsAndExpires(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	w.policy.Gate.Remind = []escalation.Duration{
		escalation.Duration(time.Hour), escalation.Duration(6 * time.Hour), escalation.Duration(24 * time.Hour), escalation.Duration(100 * time.Hour),
	}
	people := w.listen()
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeAborted, result.Outcome)
	require.Contains(t, result.Reason, "nobody answered until ")
	opened := result.Gates[0].OpenedAt
	require.Equal(t, 72*time.Hour, result.Gates[0].Answer.At.Sub(opened))
	var after []time.Duration
	for _, event := range result.Events {
		if event.Kind == escalation.EventGateReminder {
			after = append(after, event.At.Sub(opened))
		}
	}
	require.Equal(t, []time.Duration{time.Hour, 6 * time.Hour, 24 * time.Hour}, after)
	require.Len(t, people.got, 5, "the opening, three reminders, and the expiry")
	for i, told := range people.got {
		require.Equal(t, i > 0 && i < 4, told.Reminder)
	}
	require.Contains(t, people.got[2].Text, "gate-1 has been open for 6 h: tier 1 asks for a person: what it saw\n")
	require.Contains(t, people.got[4].Text, "nobody has answered gate-1 in 3 days: the chain ends")
	keys := map[string]bool{}
	for _, told := range people.got {
		keys[told.Key] = true
	}
	require.Len(t, keys, 5)
	require.Equal(t, result.Events, w.events)
}

// TestGateThatNobodyAnswersRunsTheTierAgain lets gates expire whose timeout action is fix. The chain runs the tier
// again twice and then gives up.
func TestGateThatNobodyAnswersRunsTheTierAgain(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, repeated(3, ends(escalation.SessionTimedOut))...)
	w.policy.Gate.OnTimeout = escalation.GateFix
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeAborted, result.Outcome)
	require.Len(t, result.Sessions, 3)
	var did []escalation.GateAction
	for _, gate := range result.Gates {
		did = append(did, gate.Answer.Action)
		require.Empty(t, gate.Answer.Actor)
	}
	require.Equal(t, []escalation.GateAction{escalation.GateFix, escalation.GateFix, escalation.GateAbort}, did)
	require.InDelta(t, 3*72, result.EndedAt.Sub(result.StartedAt).Hours(), 0.1)
}

// TestGateRefusesAnAnswerAfterItsExpiry answers just after the gate's timer has fired. The answer is refused as too
// late.
func TestGateRefusesAnAnswerAfterItsExpiry(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	w.env.SetOnTimerFiredListener(func(string) {
		w.env.SignalWorkflow(workflows.ResolveGate, json.RawMessage(said(escalation.GateOverride, "")))
	})
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeAborted, result.Outcome)
	refused := messagesOf(result.Events, escalation.EventGateRefused)
	require.Len(t, refused, 1)
	require.Contains(t, refused[0], "gate-1 is closed: nobody answered until ")
	require.Equal(t, result.Events, w.events)
}

func TestGateThatAnswersInTimeStopsTheReminders(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	w.policy.Gate.Remind = []escalation.Duration{escalation.Duration(time.Hour)}
	people := w.listen()
	w.answerAfter(30*time.Minute, said(escalation.GateOverride, ""))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Len(t, people.got, 1)
	require.Less(t, result.EndedAt.Sub(result.StartedAt), time.Hour)
}

// TestFailedContinuationIsNotOfferedAgain continues a session, which fails again. The next gate offers no continuation,
// and a fix runs the tier again.
func TestFailedContinuationIsNotOfferedAgain(t *testing.T) {
	t.Parallel()
	for _, status := range []escalation.SessionStatus{
		escalation.SessionTimedOut, escalation.SessionFailed, escalation.SessionResumeFailed, escalation.SessionTranscriptLost,
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03), ends(escalation.SessionTimedOut), ends(status),
				concludes(escalation.VerdictResolved, 0.5))
			w.answerAfter(time.Hour, said(escalation.GateContinue, "go on"))
			gate := w.gateAfter(t, 2*time.Hour)
			refused := w.answerAfter(2*time.Hour, saidAt("gate-2", escalation.GateContinue, ""))
			w.answerAfter(3*time.Hour, saidAt("gate-2", escalation.GateFix, "anew"))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome)
			require.Nil(t, gate.Continuation)
			require.Equal(t, []escalation.GateAction{escalation.GateFix, escalation.GateRecheck, escalation.GateOverride, escalation.GateAbort}, gate.Options)
			require.Len(t, gate.Tried, 4, "the answer at gate-1 stands between the sessions")
			require.Regexp(t, "^gate-1: .+ answered continue at .+, with the guidance “go on”$", gate.Tried[2])
			require.Contains(t, refused.refusal, "gate-2 does not offer to continue: going on with it was tried, and failed")
			require.Len(t, result.Sessions, 4, "it does not become a handoff by itself")
			again := result.Sessions[3]
			require.Equal(t, result.Sessions[0].ID, again.ParentID, "from the parent's checkpoint, not the interrupted session's")
			require.Equal(t, escalation.ContinuityResume, again.Continuity)
			require.Equal(t, escalation.PurposeTier, again.Purpose)
			require.Equal(t, "anew", w.ran[3].Guidance)
		})
	}
}

// TestNoLookGoesOnInALostConversation has a person ask for another look at a gate after a session whose conversation
// cannot be used: the look goes on in the conversation before it, or begins anew.
func TestNoLookGoesOnInALostConversation(t *testing.T) {
	t.Parallel()
	for _, status := range []escalation.SessionStatus{escalation.SessionResumeFailed, escalation.SessionTranscriptLost} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03), ends(escalation.SessionTimedOut), ends(status),
				concludes(escalation.VerdictHealthy, 0.03))
			w.answerAfter(time.Hour, said(escalation.GateContinue, ""))
			w.answerAfter(2*time.Hour, saidAt("gate-2", escalation.GateRecheck, ""))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Len(t, result.Sessions, 4)
			require.Equal(t, result.Sessions[0].ID, result.Sessions[3].ParentID)

			first := newGatedWorld(t, ends(status), concludes(escalation.VerdictHealthy, 0.03))
			first.answerAfter(time.Hour, said(escalation.GateRecheck, ""))
			result, err = first.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Len(t, result.Sessions, 2)
			require.Equal(t, escalation.ContinuityFresh, result.Sessions[1].Continuity)
		})
	}
}

// TestContinuationThatAsksAgainCanBeContinued checks that a second continuation resumes the latest conversation.
func TestContinuationThatAsksAgainCanBeContinued(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, append(repeated(2, concludes(escalation.VerdictNeedsHuman, 0.03)), concludes(escalation.VerdictHealthy, 0.03))...)
	w.answerAfter(time.Hour, said(escalation.GateContinue, "one"))
	w.answerAfter(2*time.Hour, saidAt("gate-2", escalation.GateContinue, "two"))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeHealthy, result.Outcome)
	require.Equal(t, result.Sessions[1].SessionID, w.ran[2].ParentSessionID)
	require.Equal(t, "two", w.ran[2].Guidance)
}

func TestGateWithoutTheTranscript(t *testing.T) {
	t.Parallel()
	for want, transcript := range map[string]func() (bool, error){
		"its transcript is gone: no agents' host that was asked has it, and no archive": func() (bool, error) { return false, nil },
		"nobody could tell whether its transcript is still there":                       func() (bool, error) { return false, errors.New("the archive is away") },
	} {
		w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
		w.transcript = transcript
		w.answerAfter(time.Hour, said(escalation.GateAbort, ""))
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, want, result.Gates[0].NoContinuation)
		require.Equal(t, []escalation.GateAction{escalation.GateFix, escalation.GateRecheck, escalation.GateOverride, escalation.GateAbort}, result.Gates[0].Options)
	}
}

// TestGateForABlockedEscalation lets a person run the step that a cooldown, or the limit of escalations, has refused.
// The budgets still apply.
func TestGateForABlockedEscalation(t *testing.T) {
	t.Parallel()
	cooling := func(w *world) { // refuses for longer than any wait
		slot := w.env.Now().Add(1000 * time.Hour)
		w.facts = coolingUntil(func() time.Time { return slot })
	}
	limited := func(w *world) {
		w.policy.EscalationLimit = escalation.Limit{Max: 1, Window: escalation.Duration(time.Hour)}
		w.facts = func(escalation.AdmissionRequest, time.Time) escalation.AdmissionFacts {
			return escalation.AdmissionFacts{Escalations: 1}
		}
	}
	for name, tt := range map[string]struct {
		block func(*world)
		rule  escalation.Rule
	}{"cooldown": {cooling, escalation.RuleCooldown}, "limit": {limited, escalation.RuleEscalationLimit}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := patient(newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictResolved, 0.5)))
			tt.block(w)
			people := w.listen()
			gate := w.gateAfter(t, time.Hour)
			w.answerAfter(2*time.Hour, said(escalation.GateFix, "go"))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.GateBlocked, gate.Source)
			require.Equal(t, tt.rule, gate.Rule)
			require.Equal(t, escalation.TierSafeRepair, gate.Tier)
			require.Nil(t, gate.Continuation)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome)
			require.Len(t, result.Sessions, 2)
			last := w.requests[len(w.requests)-1]
			require.False(t, last.Force, "a person passes what they have read")
			require.Equal(t, []escalation.Rule{tt.rule, escalation.RuleAccountLimit}, last.Passes)
			require.Equal(t, "go", w.ran[1].Guidance)
			require.Equal(t, w.ran[0].SessionID, w.ran[1].ParentSessionID)
			require.Equal(t, escalation.NotifyBlocked, people.got[0].Kind)
			require.Len(t, people.got, 2, "blocked, and resolved")
		})
	}
	t.Run("the day's budget", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03))
		w.policy.DayBudgetUSD = 10
		w.facts = func(request escalation.AdmissionRequest, _ time.Time) escalation.AdmissionFacts {
			return escalation.AdmissionFacts{DaySpentUSD: 400 * request.ChainSpentUSD}
		}
		w.answerAfter(time.Hour, said(escalation.GateFix, ""))
		w.answerAfter(2*time.Hour, saidAt("gate-2", escalation.GateAbort, ""))
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Len(t, result.Gates, 2, "no person can spend what is spent")
		require.Equal(t, escalation.RuleDayBudget, result.Gates[1].Rule)
		require.Len(t, w.ran, 1)
	})
	t.Run("the chain's budget", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03))
		w.policy.ChainBudgetUSD = 0.03
		w.tiers = append(w.tiers, concludes(escalation.VerdictResolved, 0.5))
		w.answerAfter(time.Hour, said(escalation.GateFix, ""))
		w.env.RegisterDelayedCallback(func() { w.policy.ChainBudgetUSD = 2 }, 90*time.Minute)
		w.answerAfter(2*time.Hour, saidAt("gate-2", escalation.GateFix, "go"))
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Len(t, result.Gates, 2, "no person can spend what is spent")
		require.Equal(t, escalation.RuleChainBudget, result.Gates[1].Rule)
		require.Equal(t, escalation.OutcomeResolved, result.Outcome, "after a higher one is set")
		require.Len(t, w.ran, 2)
		require.InDelta(t, 1.97, w.ran[1].BudgetUSD, 1e-9)
	})
	t.Run("after a wait", func(t *testing.T) {
		t.Parallel()
		w := patient(newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictResolved, 0.5)))
		free := w.env.Now().Add(29 * time.Hour)
		w.facts = func(request escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts {
			if now.After(free) || len(request.Services) == 0 {
				return escalation.AdmissionFacts{}
			}
			return escalation.AdmissionFacts{Busy: []escalation.BusyService{{Service: "jellyfin", ChainID: "other"}}}
		}
		w.answerAfter(30*time.Hour, said(escalation.GateFix, ""))
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, escalation.RuleServiceBusy, result.Gates[0].Rule)
		require.Equal(t, escalation.OutcomeResolved, result.Outcome)
		require.Equal(t, result.Events, w.events)
	})
}

func TestEscalateSignalAtAGate(t *testing.T) {
	t.Parallel()
	t.Run("after a session", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03), concludes(escalation.VerdictResolved, 0.5))
		w.signalAfter(time.Hour, `{"to_tier":1}`)
		w.signalAfter(2*time.Hour, `{"to_tier":3,"guidance":"redeploy it"}`)
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, result.Outcome)
		require.Equal(t, escalation.TierFullRepair, result.Gates[0].Answer.ToTier)
		require.Equal(t, escalation.TierFullRepair, result.Sessions[1].Tier)
		require.Equal(t, result.Sessions[0].ID, result.Sessions[1].ParentID)
		require.Equal(t, "redeploy it", w.ran[1].Guidance)
		require.Contains(t, messagesOf(result.Events, escalation.EventSignal)[0], "tier 1 is no escalation")
		require.Contains(t, messagesOf(result.Events, escalation.EventGateClosed)[0], "a person asked for tier 3")
	})
	t.Run("at which not everybody may answer", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
		w.policy.Gate.FourEyes = true
		w.signalAfter(time.Hour, `{"to_tier":3,"force":true}`)
		w.answerAfter(2*time.Hour, said(escalation.GateAbort, ""))
		result, err := w.run(t, workflows.ChainInput{Actor: "ben"})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeAborted, result.Outcome)
		require.Contains(t, messagesOf(result.Events, escalation.EventSignal)[0], "signal escalate is refused: not everybody may answer")
	})
	t.Run("of the step that was refused", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictResolved, 0.5))
		slot := w.env.Now().Add(1000 * time.Hour)
		w.facts = coolingUntil(func() time.Time { return slot })
		w.signalAfter(time.Hour, `{"to_tier":2,"force":true}`)
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, result.Outcome)
		require.Equal(t, escalation.TierSafeRepair, result.Sessions[1].Tier)
	})
}

func TestGateOfACancelledChain(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Hour)
	_, err := w.run(t, workflows.ChainInput{})
	require.True(t, temporal.IsCanceledError(err), "got %v", err)
	chain := w.query(t)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	require.Nil(t, chain.OpenGate())
	require.True(t, chain.Gates[0].Answer.Cancelled)
	require.Equal(t, chain.Events, w.events)
	require.Empty(t, messagesOf(chain.Events, escalation.EventGateReminder))
}

func TestNoGateInADryRun(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	result, err := w.run(t, workflows.ChainInput{DryRun: true})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeNeedsHuman, result.Outcome)
	require.Empty(t, result.Gates)
}

func TestFourEyesNeedToKnowWhoStarts(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t)
	w.policy.Gate.FourEyes = true
	_, err := w.run(t, workflows.ChainInput{})
	var refused *temporal.ApplicationError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "actor is empty: say who starts the chain, because CLAUDEOPS_GATE_FOUR_EYES lets somebody else answer at its gates", refused.Message())
	require.Empty(t, w.opened)
}

// TestGateIsRecordedInFull opens and closes a gate with long texts: the list of tried sessions, and a person's
// guidance.
func TestGateIsRecordedInFull(t *testing.T) {
	t.Parallel()
	verbose := func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		report, err := concludes(escalation.VerdictEscalate, 0.03)(t, input)
		report.Verdict.Summary = fmt.Sprintf("%s looked at %s", input.Tier, strings.Repeat("all ", 40))
		return report, err
	}
	guidance := strings.Repeat("ä", escalation.MaxGuidance)
	w := newGatedWorld(t, append(repeated(3, verbose), concludes(escalation.VerdictResolved, 0.5))...)
	w.answerAfter(time.Hour, said(escalation.GateFix, guidance))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	require.Equal(t, guidance, w.ran[3].Guidance)
	require.Equal(t, guidance, result.Gates[0].Answer.Guidance)
	opened := messagesOf(w.events, escalation.EventGateOpened)[0]
	for _, tried := range result.Gates[0].Tried {
		require.Contains(t, opened, tried)
	}
	require.True(t, strings.HasSuffix(messagesOf(w.events, escalation.EventGateClosed)[0], "guidance: "+guidance))
	requireRecorded(t, result.Events, w.events)
	for _, event := range result.Events {
		require.LessOrEqual(t, len([]rune(event.Message)), 500, "what the chain shows of it is short")
	}
}

// TestBlockedIssueHasAGate reports an issue that requests a tier above the highest one. Its chain begins at a gate, and
// does what a person chooses there.
func TestBlockedIssueHasAGate(t *testing.T) {
	t.Parallel()
	for action, want := range map[escalation.GateAction]escalation.Outcome{
		escalation.GateFix: escalation.OutcomeResolved, escalation.GateOverride: escalation.OutcomeOverridden,
		"": escalation.OutcomeAborted,
	} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			w := newGatedWorld(t, append([]tierScript{findsIssues(3, 2)}, repeated(2, concludes(escalation.VerdictResolved, 0.2))...)...)
			w.policy.MaxTier, w.policy.MaxParallelIssues = escalation.TierSafeRepair, 2
			w.issue = workflows.EscalationChain
			w.known = map[string]escalation.Session{}
			gate := &escalation.Gate{}
			w.env.RegisterDelayedCallback(func() {
				id := w.query(t).Issues[0].ChainID
				encoded, err := w.env.QueryWorkflowByID(id, workflows.GateQuery)
				if err == nil {
					err = encoded.Get(gate)
				}
				if err == nil && action != "" {
					err = w.env.SignalWorkflowByID(id, workflows.ResolveGate, json.RawMessage(said(action, "mind the proxy")))
				}
				if err != nil {
					t.Errorf("answer the issue: %v", err)
				}
			}, time.Hour)
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, want, result.Issues[0].Outcome, result.Issues[0].Reason)
			require.Equal(t, escalation.OutcomeResolved, result.Issues[1].Outcome)
			require.Equal(t, escalation.GateBlocked, gate.Source)
			require.Equal(t, escalation.RuleMaxTier, gate.Rule)
			require.Equal(t, "it asks for tier 3, and tier 2 is the highest allowed", gate.Reason)
			require.Equal(t, escalation.TierSafeRepair, gate.Tier)
			require.Equal(t, []escalation.GateAction{escalation.GateFix, escalation.GateRecheck, escalation.GateOverride, escalation.GateAbort}, gate.Options)
			for _, ran := range w.ran[1:] {
				require.Equal(t, escalation.TierSafeRepair, ran.Tier, "no answer passes the highest tier")
				require.Equal(t, result.Sessions[0].SessionID, ran.ParentSessionID)
			}
			if action == escalation.GateFix {
				require.Equal(t, "mind the proxy", w.ran[2].Guidance)
			}
		})
	}
}

// TestIssuesHaveGatesOfTheirOwn answers the gates of the chains of two issues. The parent opens no gate, and its
// outcome follows from theirs.
func TestIssuesHaveGatesOfTheirOwn(t *testing.T) {
	t.Parallel()
	found := func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		report, err := concludes(escalation.VerdictEscalate, 0.03)(t, input)
		report.Verdict.Issues = []escalation.Issue{
			{Summary: "502", Services: []string{"jellyfin"}, Severity: escalation.SeverityCritical},
			{Summary: "full", Services: []string{"nas"}, Severity: escalation.SeverityWarning},
		}
		return report, err
	}
	w := newGatedWorld(t, append([]tierScript{found}, repeated(2, concludes(escalation.VerdictNeedsHuman, 0.2))...)...)
	w.policy.MaxParallelIssues = 2
	w.policy.Gate.FourEyes = true
	w.issue = workflows.EscalationChain
	w.known = map[string]escalation.Session{}
	var refused error
	w.env.RegisterDelayedCallback(func() {
		chain := w.query(t)
		for i, issue := range chain.Issues {
			for _, actor := range []string{"ben", "anna"} {
				answer := fmt.Sprintf(`{"gate_id":"gate-1","action":%q,"actor":%q}`, []string{"override", "abort"}[i], actor)
				err := w.env.UpdateWorkflowByID(issue.ChainID, workflows.ResolveGate, issue.ChainID+actor, &testsuite.TestUpdateCallback{
					OnAccept: func() {}, OnReject: func(err error) { refused = err }, OnComplete: func(any, error) {},
				}, json.RawMessage(answer))
				if err != nil {
					t.Errorf("answer issue %d: %v", i+1, err)
				}
			}
		}
	}, time.Hour)
	result, err := w.run(t, workflows.ChainInput{Actor: "ben"})
	require.NoError(t, err)
	require.ErrorContains(t, refused, "ben may not answer: whoever starts a chain", "the issues' chains are that person's, too")
	require.Empty(t, result.Gates)
	require.Equal(t, []escalation.Outcome{escalation.OutcomeOverridden, escalation.OutcomeAborted},
		[]escalation.Outcome{result.Issues[0].Outcome, result.Issues[1].Outcome})
	require.Equal(t, escalation.OutcomeAborted, result.Outcome)
}

// TestFixRaisesTheHighestTier answers fix at the gate of a chain whose Tier 1 asks for a tier that is not allowed. The
// answer runs that tier if the workers allow it by then, whatever the limit of the chain's input. If not, the next gate
// says how, and no session has run in vain.
func TestFixRaisesTheHighestTier(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T, workers escalation.Tier) *world {
		t.Helper()
		w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictResolved, 0.2))
		w.policy.MaxTier = workers
		w.answerAfter(2*time.Hour, said(escalation.GateFix, "mind the proxy"))
		return w
	}
	raised := func(t *testing.T, w *world, input workflows.ChainInput) {
		t.Helper()
		gate := w.gateAfter(t, time.Hour)
		result, err := w.run(t, input)
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, result.Outcome)
		require.Equal(t, []escalation.Tier{2, 1}, []escalation.Tier{gate.Tier, gate.MaxTier})
		require.Equal(t, escalation.RuleMaxTier, gate.Rule)
		require.Equal(t, escalation.TierSafeRepair, w.ran[1].Tier)
		require.Equal(t, "mind the proxy", w.ran[1].Guidance)
		require.Equal(t, escalation.TierSafeRepair, result.MaxTier, "not more than was asked for")
	}
	t.Run("of the chain", func(t *testing.T) {
		t.Parallel()
		raised(t, begin(t, escalation.TierFullRepair), workflows.ChainInput{MaxTier: 1})
	})
	t.Run("of the workers", func(t *testing.T) {
		t.Parallel()
		w := begin(t, escalation.TierObserve)
		w.env.RegisterDelayedCallback(func() { w.policy.MaxTier = escalation.TierFullRepair }, 90*time.Minute)
		raised(t, w, workflows.ChainInput{})
	})
	t.Run("not raised", func(t *testing.T) {
		t.Parallel()
		w := begin(t, escalation.TierObserve)
		gate := w.gateAfter(t, 3*time.Hour)
		w.answerAfter(4*time.Hour, saidAt("gate-2", escalation.GateAbort, ""))
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeAborted, result.Outcome)
		require.Len(t, result.Sessions, 1, "nothing ran in vain")
		require.Equal(t, "gate-2", gate.ID)
		require.Equal(t, "tier 2 did not start: the workers allow tier 1 at most; set CLAUDEOPS_MAX_TIER=2 in their claudeops.env, "+
			"start them anew, and answer once more", gate.Reason)
		require.Equal(t, escalation.TierSafeRepair, gate.Tier)
	})
	t.Run("nobody answers", func(t *testing.T) {
		t.Parallel()
		w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03))
		w.policy.MaxTier, w.policy.Gate.OnTimeout = escalation.TierObserve, escalation.GateFix
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeAborted, result.Outcome)
		require.Len(t, result.Sessions, 1)
	})
}

// TestPersonLooksAgain answers that what was wrong is repaired. Tier 1 looks: the chain ends, or asks again and can run
// the tier that waits.
func TestPersonLooksAgain(t *testing.T) {
	t.Parallel()
	for found, want := range map[escalation.VerdictStatus]escalation.Outcome{
		escalation.VerdictHealthy: escalation.OutcomeResolved, escalation.VerdictEscalate: escalation.OutcomeResolved,
	} {
		t.Run(string(found), func(t *testing.T) {
			t.Parallel()
			w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictNeedsHuman, 0.2), concludes(found, 0.03),
				concludes(escalation.VerdictResolved, 0.2))
			answered := w.answerAfter(time.Hour, said(escalation.GateRecheck, "the disk is replaced"))
			gate := w.gateAfter(t, 2*time.Hour)
			if found == escalation.VerdictEscalate {
				w.answerAfter(3*time.Hour, saidAt("gate-2", escalation.GateFix, ""))
			}
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, "tier 1 looks, and the chain ends as resolved if all is well, with the guidance", answered.resolution.Next)
			require.Equal(t, want, result.Outcome)
			require.Equal(t, escalation.PurposeRecheck, result.Sessions[2].Purpose)
			require.Equal(t, escalation.TierObserve, w.ran[2].Tier)
			require.Equal(t, "A person says that it is repaired, and asks you to look whether it is. the disk is replaced", w.ran[2].Guidance)
			if found == escalation.VerdictEscalate {
				require.Equal(t, "the problem was reported as healed, and tier 1 still finds it", gate.Reason)
				require.Equal(t, escalation.TierSafeRepair, w.ran[3].Tier)
			}
		})
	}
}

// TestGateShowsWhatTheRecordsKnow checks that a gate has the denied calls and the restarts that the records return, and
// that a person can let a session begin although they are used up.
func TestGateShowsWhatTheRecordsKnow(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictNeedsHuman, 0.2), concludes(escalation.VerdictResolved, 0.2))
	w.notes = &escalation.GateNotes{DeniedCalls: []string{"rm x: not granted"}, Denied: 1}
	w.answerAfter(2*time.Hour, `{"gate_id":"gate-1","action":"fix","force":true,"actor":"anna"}`)
	gate := w.gateAfter(t, time.Hour)
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, *w.notes, gate.GateNotes)
	require.Equal(t, "what it saw", gate.Found)
	require.Equal(t, w.closed[1].SessionID, w.closed[1].Notes.SessionID)
	require.Nil(t, w.closed[0].Notes, "no gate follows")
	require.True(t, result.Gates[0].Answer.Force)
	require.Contains(t, w.requests[len(w.requests)-1].Passes, escalation.RuleCooldown)
}
