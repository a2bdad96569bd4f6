package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// TestWorseIsToldBeforeAReview checks that a look informs another chain of a worse incident before the repair of its
// own fault is reviewed, because the review of a handoff can lead to a wait of hours.
func TestWorseIsToldBeforeAReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, finding(escalation.Verdict{
		Status: escalation.VerdictEscalate, Summary: "down", Services: []string{"jellyfin", "nas"},
		Known: []escalation.KnownIncident{{ID: "incident-7", Status: escalation.IncidentWorse, Note: "it is down"}},
	}))
	w.policy.Continuity, w.policy.Cooldowns.MaxWait = escalation.ContinuityHandoffOnly, escalation.Duration(20*time.Hour)
	w.facts = func(request escalation.AdmissionRequest, _ time.Time) escalation.AdmissionFacts {
		if request.Tier == escalation.TierObserve {
			return escalation.AdmissionFacts{}
		}
		return escalation.AdmissionFacts{Busy: []escalation.BusyService{{Service: "nas", ChainID: "another"}}}
	}
	w.incidents = []escalation.Incident{knownIncident(escalation.ChainWaiting)}
	begin, told := w.env.Now(), time.Duration(-1)
	w.env.OnSignalExternalWorkflow(mock.Anything, "other", "", workflows.IncidentSignalName, mock.Anything).Return(
		func(_, _, _, _ string, _ any) error {
			told = w.env.Now().Sub(begin)
			return nil
		})
	chain, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.RuleServiceBusy, chain.Rule)
	require.Greater(t, chain.EndedAt.Sub(begin), 19*time.Hour)
	require.GreaterOrEqual(t, told, time.Duration(0))
	require.Less(t, told, time.Minute)
}

// TestHealedAgainAndAgain checks an incident that every look finds healed and every recheck finds again. The chain
// opens few gates, and then waits for an answer.
func TestHealedAgainAndAgain(t *testing.T) {
	t.Parallel()
	const looks = 60
	tiers := make([]tierScript, looks)
	for i := range tiers {
		tiers[i] = concludes(escalation.VerdictNeedsHuman, 0.01)
	}
	w := atGateWith(t, escalation.HealedClose, tiers...)
	w.policy.Gate.Timeout = escalation.Duration(100 * time.Hour)
	people := w.listen()
	for i := range looks {
		w.news(time.Duration(i+1)*time.Hour, escalation.IncidentGone)
	}
	chain, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Len(t, chain.Gates, 3)
	require.Len(t, chain.Gates[2].News, 1, "people see what the looks say")
	require.LessOrEqual(t, len(people.got), 4)
}

// TestGateDetailsShowNews checks that the Web UI shows the news at a gate as soon as they arrive.
func TestGateDetailsShowNews(t *testing.T) {
	t.Parallel()
	w := atGateWith(t, escalation.HealedKeep)
	w.policy.Notify = false
	w.news(10*time.Minute, escalation.IncidentWorse)
	shown := w.detailsAfter(t, 20*time.Minute)
	_, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Contains(t, *shown, "incident-7 is worse, says chain look-9")
}

// TestWaitThatGoesOnDetaches checks a wait that begins for the day's budget and continues for a busy service. From then
// on, the cycle does not wait for the chain.
func TestWaitThatGoesOnDetaches(t *testing.T) {
	t.Parallel()
	w := patient(newWorld(t, concludes(escalation.VerdictResolved, 0.01)))
	w.policy.DayBudgetUSD = 10
	start, signalled := w.env.Now(), time.Duration(0)
	w.facts = func(_ escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts {
		switch passed := now.Sub(start); {
		case passed < 10*time.Minute:
			return escalation.AdmissionFacts{DaySpentUSD: 1, DayReservedUSD: 9}
		case passed < 2*time.Hour:
			return escalation.AdmissionFacts{Busy: []escalation.BusyService{{Service: "jellyfin", ChainID: "other"}}}
		}
		return escalation.AdmissionFacts{}
	}
	w.env.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		workflow.Go(ctx, func(ctx workflow.Context) {
			workflow.GetSignalChannel(ctx, workflows.WaitingSignal).Receive(ctx, nil)
			signalled = workflow.Now(ctx).Sub(start)
		})
		input := workflows.ChainInput{StartTier: 2, Services: []string{"jellyfin"}}
		return workflow.ExecuteChildWorkflow(ctx, workflows.EscalationChain, input).Get(ctx, nil)
	}, workflow.RegisterOptions{Name: "Starter"})
	w.answer(t)
	w.env.ExecuteWorkflow("Starter")
	require.NoError(t, w.env.GetWorkflowError())
	require.GreaterOrEqual(t, signalled, 10*time.Minute)
	require.Less(t, signalled, time.Hour)
}

// TestWaitEndsOnTime checks that a wait ends at its time although the record of the wait took long.
func TestWaitEndsOnTime(t *testing.T) {
	t.Parallel()
	w := patient(newWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictHealthy, 0.02)))
	slot := w.env.Now().Add(time.Hour)
	w.facts, w.recordTakes = coolingUntil(func() time.Time { return slot }), 20*time.Minute
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Less(t, result.Sessions[1].StartedAt.Sub(slot), time.Minute)
}

// TestChainCancelledAtAGateWithoutDatabase checks that a chain at a gate that is cancelled does not wait for the
// database.
func TestChainCancelledAtAGateWithoutDatabase(t *testing.T) {
	t.Parallel()
	for name, news := range map[string]bool{"while the gate is recorded": false, "while news are recorded": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := atGateWith(t, escalation.HealedKeep)
			w.policy.Notify, w.failRecord = false, !news
			if news {
				w.env.RegisterDelayedCallback(func() { defer w.alone()(); w.failRecord = true }, 10*time.Second)
				w.news(15*time.Second, escalation.IncidentWorse)
			}
			w.env.RegisterDelayedCallback(w.env.CancelWorkflow, 20*time.Second)
			begin := w.env.Now()
			_, err := w.run(t, workflows.ChainInput{})
			require.True(t, temporal.IsCanceledError(err), "got %v", err)
			chain := w.query(t)
			require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
			require.Less(t, chain.EndedAt.Sub(begin), 5*time.Minute)
			require.Less(t, w.env.Now().Sub(begin), 8*time.Minute)
		})
	}
}
