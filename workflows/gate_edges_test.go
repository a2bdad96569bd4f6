package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// TestGateCancelledBeforeANewRun cancels a chain with a long history while the opening of its gate is being recorded.
// The chain must not continue as new, because the new run would not be cancelled.
func TestGateCancelledBeforeANewRun(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	w.recordTakes = time.Minute
	w.longHistory(10 * time.Second)
	w.env.RegisterDelayedCallback(w.env.CancelWorkflow, 30*time.Second)
	_, err := w.run(t, workflows.ChainInput{})
	require.True(t, temporal.IsCanceledError(err), "got %v", err)
	require.Equal(t, escalation.OutcomeAborted, w.query(t).Outcome)
}

// TestTierThatWasNeverHeardOf loses every worker of a tier before its first heartbeat. The tier's spending is unknown,
// so its whole reservation counts as spent.
func TestTierThatWasNeverHeardOf(t *testing.T) {
	t.Parallel()
	lost := func(*testing.T, activities.RunTierInput) (escalation.Report, error) {
		return escalation.Report{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, nil)
	}
	w := newGatedWorld(t, append(repeated(30, lost), concludes(escalation.VerdictResolved, 0.1))...)
	w.policy.ChainBudgetUSD, w.policy.Tiers[0].BudgetUSD = 1, 0.6
	w.answerAfter(time.Hour, said(escalation.GateFix, ""))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	require.Len(t, result.Sessions, 2)
	require.Equal(t, "no worker finished the tier in time (Heartbeat)", result.Sessions[0].Error)
	require.True(t, result.Sessions[0].CostUnknown())
	require.InDelta(t, 0.6, result.Sessions[0].BudgetUSD, 1e-9)
	require.InDelta(t, 0.4, result.Sessions[1].BudgetUSD, 1e-9, "the rest of the chain's budget")
	require.InDelta(t, 0.1, result.CostUSD, 1e-9, "what is known")
}

// TestGateAnswerBeforeANewRun sends an answer while the chain records failed notifications. That is its last step
// before it continues as new.
func TestGateAnswerBeforeANewRun(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	w.recordTakes = time.Minute
	w.listen().fail = errAway
	w.env.OnWorkflow(workflows.DeliveryWorkflow, mock.Anything, mock.Anything).Return(nil)
	w.policy.Gate.Remind = []escalation.Duration{escalation.Duration(5 * time.Minute)} // it is recorded until 360 s
	w.env.RegisterDelayedCallback(func() { w.env.SetCurrentHistoryLength(10_000) }, 310*time.Second)
	w.replyAfter(400*time.Second, said(escalation.GateOverride, "")) // arrives while the failure is recorded, until 420 s
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeOverridden, result.Outcome)
}

// TestGateRequestBeforeANewRun requests a tier right after the gate was answered. The unread request keeps the chain in
// this run, and the next decision reads it.
func TestGateRequestBeforeANewRun(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03), ends(escalation.SessionTimedOut),
		concludes(escalation.VerdictNeedsHuman, 0.03), concludes(escalation.VerdictResolved, 0.5))
	w.recordTakes = time.Minute
	w.longHistory(10 * time.Second)
	w.answerAfter(30*time.Second, said(escalation.GateFix, "now"))
	w.signalAfter(40*time.Second, `{"to_tier":3,"guidance":"at once"}`)
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	require.Equal(t, escalation.TierFullRepair, w.ran[3].Tier)
	require.Equal(t, "at once", w.ran[3].Guidance)
}

// TestRequestAfterAContinuationIsRefused requests a higher tier after the continuation of a session was not admitted.
// The higher tier runs as an ordinary tier, and its parent is the interrupted session.
func TestRequestAfterAContinuationIsRefused(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03), ends(escalation.SessionTimedOut),
		concludes(escalation.VerdictResolved, 0.5))
	w.facts = func(request escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts {
		if len(w.ran) < 2 {
			return escalation.AdmissionFacts{}
		}
		until := now.Add(1000 * time.Hour)
		return coolingUntil(func() time.Time { return until })(request, now)
	}
	w.answerAfter(time.Hour, said(escalation.GateContinue, "go on"))
	w.signalAfter(2*time.Hour, `{"to_tier":3,"force":true}`)
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	require.Len(t, w.ran, 3)
	require.Equal(t, escalation.TierFullRepair, w.ran[2].Tier)
	require.False(t, w.ran[2].Continues)
	require.Equal(t, escalation.PurposeTier, result.Sessions[2].Purpose)
	require.Equal(t, result.Sessions[1].SessionID, w.ran[2].ParentSessionID)
}

// TestFixPassesWhatWasRead answers fix at a gate for the day's budget. A cooldown and the limit of escalations then
// refuse the step, too. The answer must not skip these limits, because the person has not read about them. Each limit
// must open its own gate.
func TestFixPassesWhatWasRead(t *testing.T) {
	t.Parallel()
	w := patient(newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictResolved, 0.5)))
	w.policy.DayBudgetUSD = 10
	w.policy.EscalationLimit = escalation.Limit{Max: 1, Window: escalation.Duration(time.Hour)}
	start := w.env.Now()
	w.facts = func(request escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts {
		if request.Tier == escalation.TierObserve {
			return escalation.AdmissionFacts{}
		}
		if now.Before(start.Add(30 * time.Minute)) {
			return escalation.AdmissionFacts{DaySpentUSD: 10}
		}
		until := now.Add(1000 * time.Hour)
		facts := coolingUntil(func() time.Time { return until })(request, now)
		facts.Escalations = 99
		return facts
	}
	for i, gate := range []string{"gate-1", "gate-2", "gate-3"} {
		w.answerAfter(time.Duration(i+1)*time.Hour, saidAt(gate, escalation.GateFix, ""))
	}
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	var rules []escalation.Rule
	for _, gate := range result.Gates {
		rules = append(rules, gate.Rule)
	}
	require.Equal(t, []escalation.Rule{escalation.RuleDayBudget, escalation.RuleCooldown, escalation.RuleEscalationLimit}, rules)
}

// TestRequestPassesNoGate requests a tier where only some people may answer at gates. It checks that the request
// neither replaces a gate nor skips the cooldowns.
func TestRequestPassesNoGate(t *testing.T) {
	t.Parallel()
	restricted := func(t *testing.T, first tierScript) *world {
		t.Helper()
		w := newGatedWorld(t, first, concludes(escalation.VerdictResolved, 0.5))
		w.policy.Gate.FourEyes = true
		w.tierTakes = time.Minute
		return w
	}
	t.Run("instead of a gate", func(t *testing.T) {
		t.Parallel()
		w := restricted(t, concludes(escalation.VerdictNeedsHuman, 0.03))
		w.signalAfter(30*time.Second, `{"to_tier":3}`)
		w.answerAfter(time.Hour, said(escalation.GateOverride, ""))
		result, err := w.run(t, workflows.ChainInput{Actor: "ben"})
		require.NoError(t, err)
		require.Len(t, result.Gates, 1)
		require.Len(t, w.ran, 1)
		signals := messagesOf(result.Events, escalation.EventSignal)
		require.Contains(t, signals[len(signals)-1], "not everybody may answer")
	})
	t.Run("by force", func(t *testing.T) {
		t.Parallel()
		w := restricted(t, concludes(escalation.VerdictEscalate, 0.03))
		w.signalAfter(30*time.Second, `{"to_tier":3,"force":true}`)
		result, err := w.run(t, workflows.ChainInput{Actor: "ben"})
		require.NoError(t, err)
		require.Contains(t, messagesOf(result.Events, escalation.EventSignal)[0], "not everybody may answer")
		require.Equal(t, escalation.TierSafeRepair, w.ran[1].Tier, "as Tier 1 asks")
	})
	t.Run("an escalation that needs no gate", func(t *testing.T) {
		t.Parallel()
		w := restricted(t, concludes(escalation.VerdictEscalate, 0.03))
		w.signalAfter(30*time.Second, `{"to_tier":3}`)
		_, err := w.run(t, workflows.ChainInput{Actor: "ben"})
		require.NoError(t, err)
		require.Equal(t, escalation.TierFullRepair, w.ran[1].Tier)
	})
	t.Run("from the start", func(t *testing.T) {
		t.Parallel()
		w := restricted(t, concludes(escalation.VerdictEscalate, 0.03))
		_, err := w.run(t, workflows.ChainInput{Actor: "ben", Force: true})
		require.ErrorContains(t, err, "force is not possible")
		require.Empty(t, w.ran)
	})
}

// TestNamelessRequestDoesNotPassARefusedTier requests a tier while the admission of another tier is being refused. The
// request must not bypass the gate if only one person may answer there.
func TestNamelessRequestDoesNotPassARefusedTier(t *testing.T) {
	t.Parallel()
	for name, approvers := range map[string][]string{"only anna may answer": {"anna"}, "everybody may": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.1), concludes(escalation.VerdictResolved, 0.1))
			w.policy.Gate.Approvers = approvers
			w.policy.Cooldowns.Restarts = escalation.Limit{Max: 1, Window: escalation.Duration(time.Hour)}
			w.facts = func(r escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts {
				restarted := []escalation.LedgerEntry{{Service: "jellyfin", Kind: escalation.ActionRestart, At: now.Add(-time.Minute)}}
				return escalation.AdmissionFacts{Services: w.policy.Cooldowns.States(restarted, r.Services, now)}
			}
			w.openTakes = 5 * time.Second
			w.env.RegisterDelayedCallback(func() { w.env.SignalWorkflow("escalate", map[string]any{"to_tier": 3}) }, 7*time.Second)
			w.answerAfter(time.Minute, said(escalation.GateAbort, ""))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			if approvers == nil {
				require.Len(t, w.ran, 2)
				require.Equal(t, escalation.TierFullRepair, w.ran[1].Tier)
				require.Empty(t, result.Gates)
				return
			}
			require.Len(t, w.ran, 1)
			require.Len(t, result.Gates, 1)
			require.Contains(t, strings.Join(messagesOf(result.Events, escalation.EventSignal), "\n"), "signal escalate is refused: not everybody may answer")
		})
	}
}

// TestGateAfterASessionOfUnknownCost checks that a budget that may be spent counts as spent: a session starts only
// under a higher one.
func TestGateAfterASessionOfUnknownCost(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, func(*testing.T, activities.RunTierInput) (escalation.Report, error) {
		return escalation.Report{Status: escalation.SessionFailed, Cost: escalation.Cost{CostEstimated: true}, Error: "no worker finished the tier in time"}, nil
	})
	w.policy.ChainBudgetUSD = 1
	w.answerAfter(time.Hour, said(escalation.GateFix, ""))
	w.answerAfter(2*time.Hour, saidAt("gate-2", escalation.GateAbort, ""))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, "under the CLAUDEOPS_CHAIN_BUDGET_USD that is set then", result.Gates[0].Budget)
	require.Zero(t, result.Gates[0].CostUSD, "what is known to be spent")
	require.Len(t, w.ran, 1)
	require.Len(t, result.Gates, 2)
	require.Equal(t, escalation.RuleChainBudget, result.Gates[1].Rule)
}

// TestEveryNotificationOfARunHasItsOwnKey settles the pending notifications because of a long history, but then stays
// in the same run. The notification of the next gate must still get a new key.
func TestEveryNotificationOfARunHasItsOwnKey(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, repeated(3, concludes(escalation.VerdictNeedsHuman, 0.1))...)
	people := w.listen()
	people.fail = temporal.NewNonRetryableApplicationError("the chat is away", "Test", nil) // leaves an event to record
	w.env.OnWorkflow(workflows.DeliveryWorkflow, mock.Anything, mock.Anything).Return(nil)
	w.policy.Gate.Remind = []escalation.Duration{escalation.Duration(50*time.Minute - 3*time.Second)}
	w.recordTakes = 5 * time.Second
	w.env.RegisterDelayedCallback(func() { w.env.SetCurrentHistoryLength(2_000) }, 50*time.Minute)
	w.env.RegisterDelayedCallback(func() { w.env.SetCurrentHistoryLength(100) }, 50*time.Minute+4*time.Second)
	w.answerAfter(50*time.Minute+2*time.Second, said(escalation.GateFix, ""))
	w.env.RegisterDelayedCallback(func() { w.env.SignalWorkflow("escalate", map[string]any{"to_tier": 2}) }, 50*time.Minute+3*time.Second)
	w.answerAfter(30*time.Hour, saidAt("gate-2", escalation.GateAbort, ""))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Len(t, result.Gates, 2)
	keys := map[string]bool{}
	for _, told := range people.got {
		keys[told.Key] = true
	}
	require.Len(t, keys, len(people.got))
	require.Len(t, people.got, 4, "two gates, and a reminder of each")
}

// TestFixWithoutTheConversationToStartFrom starts from a conversation that has no record and cannot be loaded. The fix
// starts without it, because loading it again would fail, too.
func TestFixWithoutTheConversationToStartFrom(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, ends(escalation.SessionTranscriptLost), concludes(escalation.VerdictResolved, 0.1))
	answered := w.answerAfter(time.Hour, said(escalation.GateFix, ""))
	result, err := w.run(t, workflows.ChainInput{ResumeFrom: &workflows.ResumeFrom{SessionID: "4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11"}})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	require.Len(t, result.Gates, 1)
	require.Contains(t, answered.resolution.Next, "without the conversation that cannot be used")
	require.Equal(t, escalation.ContinuityResume, result.Sessions[0].Continuity)
	require.Equal(t, escalation.ContinuityFresh, result.Sessions[1].Continuity)
	require.Empty(t, w.ran[1].ParentSessionID)
}

// TestFixOfASessionThatOutgrewItsOriginLoadsItAgain starts from a conversation that has no record but can be loaded.
// The session does some work and then fails to resume. The fix loads the original conversation again.
func TestFixOfASessionThatOutgrewItsOriginLoadsItAgain(t *testing.T) {
	t.Parallel()
	const origin = "4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11"
	for name, report := range map[string]escalation.Report{
		"outgrown":    {Status: escalation.SessionResumeFailed, Attempts: 1, ContextTokens: 190_000},
		"interrupted": {Status: escalation.SessionTranscriptLost, Attempts: 1, Interrupted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGatedWorld(t, func(*testing.T, activities.RunTierInput) (escalation.Report, error) { return report, nil },
				concludes(escalation.VerdictResolved, 0.1))
			w.answerAfter(time.Hour, said(escalation.GateFix, ""))
			_, err := w.run(t, workflows.ChainInput{ResumeFrom: &workflows.ResumeFrom{SessionID: origin}})
			require.NoError(t, err)
			require.Equal(t, origin, w.ran[1].ParentSessionID)
		})
	}
}
