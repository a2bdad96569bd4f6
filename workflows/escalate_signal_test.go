package workflows_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// signalAfter sends the escalate signal after delay, with the payload that a person types.
func (w *world) signalAfter(delay time.Duration, payload string) {
	w.env.RegisterDelayedCallback(func() {
		w.env.SignalWorkflow(workflows.EscalateSignalName, json.RawMessage(payload))
	}, delay)
}

func TestEscalateSignal(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		payload string
		change  func(*escalation.Policy)
		tiers   []tierScript
		want    escalation.Outcome
		// event is a part of the message of the signal's event.
		event string
	}{
		"escalates what is healthy": {
			payload: `{"to_tier":3,"reason":"users complain","guidance":"look at the reverse proxy"}`,
			tiers:   []tierScript{concludes(escalation.VerdictHealthy, 0.01), concludes(escalation.VerdictResolved, 0.50)},
			want:    escalation.OutcomeResolved, event: "a person asks for tier 3: users complain",
		},
		"the highest tier holds": {
			payload: `{"to_tier":3,"force":true}`, change: func(p *escalation.Policy) { p.MaxTier = 2 },
			tiers: []tierScript{concludes(escalation.VerdictHealthy, 0.01)},
			want:  escalation.OutcomeHealthy, event: "signal escalate is refused: tier 3 is not possible: tier 2 is the highest allowed",
		},
		"a dry run holds": {
			payload: `{"to_tier":2,"force":true}`, change: func(p *escalation.Policy) { p.DryRun = true },
			tiers: []tierScript{concludes(escalation.VerdictHealthy, 0.01)},
			want:  escalation.OutcomeHealthy, event: "is refused: tier 2 is not possible: this is a dry run",
		},
		"not downwards": {
			payload: `{"to_tier":1}`, tiers: []tierScript{concludes(escalation.VerdictHealthy, 0.01)},
			want: escalation.OutcomeHealthy, event: "is refused: tier 1 is no escalation",
		},
		"no tier": {
			payload: `{}`, tiers: []tierScript{concludes(escalation.VerdictHealthy, 0.01)},
			want: escalation.OutcomeHealthy, event: "is refused: to_tier 0 is not a tier: it must be 1, 2 or 3",
		},
		"an unknown field": {
			payload: `{"to_tier":2,"tier":3}`, tiers: []tierScript{concludes(escalation.VerdictHealthy, 0.01)},
			want: escalation.OutcomeHealthy, event: `is refused: input is not valid: unknown field "tier"`,
		},
		"the wrong shape": {
			payload: `[2]`, tiers: []tierScript{concludes(escalation.VerdictHealthy, 0.01)},
			want: escalation.OutcomeHealthy, event: "is refused: input must be a JSON object, not an array",
		},
		"too many words": {
			payload: `{"to_tier":2,"guidance":"` + strings.Repeat("a", 10_001) + `"}`,
			tiers:   []tierScript{concludes(escalation.VerdictHealthy, 0.01)},
			want:    escalation.OutcomeHealthy, event: "is refused: guidance has 10003 bytes as JSON, and at most 10000 are allowed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.tiers...)
			w.tierTakes = time.Minute
			if tt.change != nil {
				tt.change(&w.policy)
			}
			w.signalAfter(10*time.Second, tt.payload)
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, tt.want, result.Outcome)
			require.Len(t, w.ran, len(tt.tiers))
			var messages []string
			for _, event := range result.Events {
				if event.Kind == escalation.EventSignal {
					messages = append(messages, event.Message)
				}
			}
			require.Len(t, messages, 1)
			require.Contains(t, messages[0], tt.event)
			require.Equal(t, result.Events, w.events)
			if tt.want == escalation.OutcomeResolved {
				require.Equal(t, "look at the reverse proxy", w.ran[1].Guidance)
				require.Equal(t, w.ran[0].SessionID, w.ran[1].ParentSessionID, "the conversation goes on")
			}
		})
	}
}

// TestEscalateSignalIsTheContract checks the payload format that clients rely on.
func TestEscalateSignalIsTheContract(t *testing.T) {
	t.Parallel()
	var signal workflows.EscalateSignal
	require.NoError(t, json.Unmarshal([]byte(`{"to_tier":3,"reason":"r","guidance":"g","force":true}`), &signal))
	require.NoError(t, signal.Validate())
	require.Equal(t, workflows.EscalateSignal{ToTier: 3, Reason: "r", Guidance: "g", Force: true}, signal)
}

// TestEscalateSignalThatIsNoJSON checks that an undecodable signal leaves an event and changes nothing else.
func TestEscalateSignalThatIsNoJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concludes(escalation.VerdictHealthy, 0.01))
	w.tierTakes = time.Minute
	w.env.RegisterDelayedCallback(func() { w.env.SignalWorkflow(workflows.EscalateSignalName, []byte("to tier 2")) }, 10*time.Second)
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeHealthy, result.Outcome)
	requireUnreadable(t, result, workflows.EscalateSignalName)
}

// requireUnreadable checks that exactly one event reports an undecodable signal.
func requireUnreadable(t *testing.T, chain escalation.Chain, signal string) {
	t.Helper()
	count := 0
	for _, event := range chain.Events {
		if event.Message == "signal "+signal+" is refused: its payload cannot be read; send one JSON object" {
			require.Equal(t, escalation.SeverityWarning, event.Severity)
			count++
		}
	}
	require.Equal(t, 1, count, "%+v", chain.Events)
}

// TestEscalateSignalThatIsNoJSONDuringAWait checks that the timer and cancellation still end a wait after an
// undecodable signal.
func TestEscalateSignalThatIsNoJSONDuringAWait(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]bool{"the timer": false, "cancellation": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := patient(newWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictEscalate, 0.02),
				concludes(escalation.VerdictResolved, 0.50)))
			slot := w.env.Now().Add(10 * time.Hour)
			w.facts = coolingUntil(func() time.Time { return slot })
			w.env.RegisterDelayedCallback(func() { w.env.SignalWorkflow(workflows.EscalateSignalName, []byte("to tier 2")) }, time.Hour)
			want := escalation.OutcomeResolved
			if cancel {
				w.env.RegisterDelayedCallback(w.env.CancelWorkflow, 2*time.Hour)
				want = escalation.OutcomeAborted
			}
			result, err := w.run(t, workflows.ChainInput{})
			if cancel {
				result = w.query(t)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, want, result.Outcome)
			requireUnreadable(t, result, workflows.EscalateSignalName)
		})
	}
}

// TestEscalateSignalEndsAWait requests tiers during a wait. The request either skips the cooldown, or waits for the
// cooldown of the higher tier.
func TestEscalateSignalEndsAWait(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		payload string
		tier    escalation.Tier
		forced  bool
	}{
		"by force":                          {`{"to_tier":2,"force":true,"guidance":"now"}`, 2, true},
		"with a tier that has a slot":       {`{"to_tier":3,"guidance":"now"}`, 3, false},
		"by force, with a tier above it":    {`{"to_tier":3,"force":true,"guidance":"now"}`, 3, true},
		"after one that changes nothing":    {`{"to_tier":2}`, 2, false},
		"after one that is refused at once": {`{"to_tier":1}`, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tiers := []tierScript{concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictResolved, 0.50)}
			at := time.Hour
			if strings.Contains(name, "refused") {
				tiers = []tierScript{tiers[0], concludes(escalation.VerdictEscalate, 0.02), tiers[1]}
			}
			if strings.HasPrefix(name, "after") {
				at = 10 * time.Hour
			}
			w := patient(newWorld(t, tiers...))
			start := w.env.Now()
			slot := start.Add(10 * time.Hour)
			w.facts = func(request escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts {
				facts := coolingUntil(func() time.Time { return slot })(request, now)
				for i := range facts.Services {
					facts.Services[i].Redeployments = escalation.Use{Free: true}
				}
				return facts
			}
			w.signalAfter(time.Hour, tt.payload)
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome)
			last := result.Last()
			require.Equal(t, tt.tier, last.Tier)
			require.InDelta(t, at.Seconds(), last.StartedAt.Sub(start).Seconds(), 10)
			require.Equal(t, tt.forced, w.requests[len(w.requests)-1].Force)
			if strings.Contains(tt.payload, "now") {
				require.Equal(t, "now", w.ran[len(w.ran)-1].Guidance)
			}
		})
	}
}
