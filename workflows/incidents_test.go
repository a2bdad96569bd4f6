package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// knownIncident returns an incident of jellyfin with which another chain waits.
func knownIncident(status escalation.ChainStatus) escalation.Incident {
	return escalation.Incident{
		ID: "incident-7", Services: []string{"jellyfin"}, Summary: "it is slow", Severity: escalation.SeverityWarning,
		State: escalation.IncidentWaiting,
		Chains: []escalation.IncidentChain{{ChainID: "other", ChainProgress: escalation.ChainProgress{
			Status: status, Reason: "tier 3 asks for a person",
		}}},
	}
}

// finding returns a script of a tier that reports this verdict.
func finding(verdict escalation.Verdict) tierScript {
	return func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		report, err := concludes(verdict.Status, 0.01)(t, input)
		report.Verdict = &verdict
		return report, err
	}
}

func events(chain escalation.Chain, kind escalation.EventKind) []string {
	var messages []string
	for _, event := range chain.Events {
		if event.Kind == kind {
			messages = append(messages, event.Message)
		}
	}
	return messages
}

// TestKnownIncident checks a look that finds only a fault of which another chain takes care. The look's chain must end
// as known, and must notify nobody.
func TestKnownIncident(t *testing.T) {
	t.Parallel()
	for _, status := range []escalation.ChainStatus{escalation.ChainWaiting, escalation.ChainRepairing} {
		for _, verdict := range []escalation.VerdictStatus{escalation.VerdictEscalate, escalation.VerdictNeedsHuman, escalation.VerdictFailed} {
			w := newWorld(t, concludes(verdict, 0.03))
			w.policy.Notify, w.policy.Gate.Timeout = true, escalation.Duration(time.Hour)
			w.incidents = []escalation.Incident{knownIncident(status)}
			chain, err := w.run(t, workflows.ChainInput{Trigger: escalation.TriggerScheduled})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeKnown, chain.Outcome)
			require.Len(t, chain.Sessions, 1)
			require.Contains(t, chain.Reason, "incident-7 (jellyfin: it is slow) is with chain other, which ")
			require.Len(t, events(chain, escalation.EventIncident), 1)
			require.Contains(t, events(chain, escalation.EventIncident)[0], "chain other")
			require.Equal(t, "other", chain.Incidents[0].Handler)
			require.Equal(t, []string{"incident-7"}, w.closed[0].Progress.Leaves)
			require.Equal(t, escalation.OutcomeKnown, w.closed[0].Progress.Outcome)
			w.env.AssertNotCalled(t, "Notify", mock.Anything, mock.Anything)
		}
	}
}

// TestUnknownIncident checks three kinds of faults that the chain repairs although an incident is recorded: a fault of
// another service, a fault of which no other chain takes care, and a fault whose repair a person forces.
func TestUnknownIncident(t *testing.T) {
	t.Parallel()
	ended := knownIncident(escalation.ChainEnded)
	elsewhere := knownIncident(escalation.ChainWaiting)
	elsewhere.Services = []string{"nas"}
	own := knownIncident(escalation.ChainWaiting)
	own.Chains[0].ChainID = "default-test-workflow-id"
	expired := knownIncident(escalation.ChainWaiting)
	expired.Chains[0].Until = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		incident escalation.Incident
		input    workflows.ChainInput
	}{
		"nobody takes care":     {ended, workflows.ChainInput{}},
		"another service":       {elsewhere, workflows.ChainInput{}},
		"its own":               {own, workflows.ChainInput{}},
		"its gate is long over": {expired, workflows.ChainInput{}},
		"forced":                {knownIncident(escalation.ChainWaiting), workflows.ChainInput{Force: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictResolved, 0.4))
			w.incidents = []escalation.Incident{tt.incident}
			chain, err := w.run(t, tt.input)
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, chain.Outcome)
		})
	}
}

// TestUnansweredIncident checks that a fault is known after its chain has ended because nobody acted. Later looks must
// not notify people again, and a chain that a person starts must repair the fault.
func TestUnansweredIncident(t *testing.T) {
	t.Parallel()
	asked := knownIncident(escalation.ChainEnded)
	asked.Chains[0].Outcome = escalation.OutcomeNeedsHuman
	w := newWorld(t, concludes(escalation.VerdictEscalate, 0.03))
	w.policy.Notify = true
	w.incidents = []escalation.Incident{asked}
	chain, err := w.run(t, workflows.ChainInput{Trigger: escalation.TriggerScheduled})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeKnown, chain.Outcome)
	require.Contains(t, chain.Reason, "is with chain other, which ended, and nobody has acted since: tier 3 asks for a person")
	w.env.AssertNotCalled(t, "Notify", mock.Anything, mock.Anything)

	lower := knownIncident(escalation.ChainEnded)
	lower.Chains[0].Outcome, lower.Chains[0].MaxTier = escalation.OutcomeNeedsHuman, escalation.TierSafeRepair
	w = newWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictResolved, 0.4))
	w.incidents = []escalation.Incident{lower}
	chain, err = w.run(t, workflows.ChainInput{Trigger: escalation.TriggerScheduled})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "a higher tier is allowed now")

	earlier := knownIncident(escalation.ChainEnded)
	earlier.Chains[0].Outcome, earlier.Chains[0].ChainID, earlier.Chains[0].FirstRunID = escalation.OutcomeNeedsHuman, chain.ID, "run-0"
	w = newWorld(t, concludes(escalation.VerdictEscalate, 0.03))
	w.incidents = []escalation.Incident{earlier}
	chain, err = w.run(t, workflows.ChainInput{Trigger: escalation.TriggerScheduled})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeKnown, chain.Outcome, "an earlier chain had this one's workflow ID")

	w = newWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictResolved, 0.4))
	w.incidents = []escalation.Incident{asked}
	chain, err = w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome)
}

// TestHealthyLookComparesNothing checks that a look that finds nothing wrong asks the records nothing.
func TestHealthyLookComparesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concludes(escalation.VerdictHealthy, 0.03))
	chain, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Empty(t, w.compared)
	require.False(t, chain.Sessions[0].HasRequest)
}

// TestWorseIncident checks that a waiting chain is informed once of an incident that has become worse. If the
// incident's chain has ended with override, the fault must count as new.
func TestWorseIncident(t *testing.T) {
	t.Parallel()
	worse := escalation.Verdict{
		Status: escalation.VerdictEscalate, Summary: "down", Services: []string{"jellyfin"},
		Known: []escalation.KnownIncident{{ID: "incident-7", Status: escalation.IncidentWorse, Note: "it is down"}},
	}
	told := map[string]int{}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for before, worseAt := range map[string]time.Time{
		"never": {}, "since its chain met it": at, "before its chain met it": at.Add(-2 * time.Hour), "as its chain met it": at.Add(-time.Hour),
	} {
		w := newWorld(t, finding(worse))
		incident := knownIncident(escalation.ChainWaiting)
		incident.WorseAt, incident.Chains[0].Since = worseAt, at.Add(-time.Hour)
		w.incidents = []escalation.Incident{incident}
		w.env.OnSignalExternalWorkflow(mock.Anything, "other", "", workflows.IncidentSignalName, mock.Anything).Maybe().Return(
			func(_, _, _, _ string, arg any) error {
				require.Equal(t, workflows.IncidentSignal{
					IncidentID: "incident-7", Status: escalation.IncidentWorse, Note: "it is down", ChainID: "default-test-workflow-id",
				}, arg)
				told[before]++
				return errAway // a chain that has gone is no error
			})
		chain, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeKnown, chain.Outcome)
	}
	require.Equal(t, map[string]int{"never": 1, "before its chain met it": 1, "as its chain met it": 1}, told)

	accepted := knownIncident(escalation.ChainEnded)
	accepted.Chains[0].Outcome = escalation.OutcomeOverridden
	w := newWorld(t, concludes(escalation.VerdictEscalate, 0.01))
	w.incidents = []escalation.Incident{accepted}
	chain, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeKnown, chain.Outcome, "a person has accepted it")
	w = newWorld(t, finding(worse), concludes(escalation.VerdictResolved, 0.4))
	w.incidents = []escalation.Incident{accepted}
	chain, err = w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "but not this")
}

// TestWorseIncidentOfALostChain checks an incident that has become worse, and whose chain cannot be informed. People
// must be notified instead.
func TestWorseIncidentOfALostChain(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]error{"told": nil, "gone": errAway} {
		w := newWorld(t, finding(escalation.Verdict{
			Status: escalation.VerdictEscalate, Summary: "down", Services: []string{"jellyfin"},
			Known: []escalation.KnownIncident{{ID: "incident-7", Status: escalation.IncidentWorse, Note: "it is down"}},
		}))
		w.policy.Notify = true
		w.incidents = []escalation.Incident{knownIncident(escalation.ChainWaiting)}
		w.env.OnSignalExternalWorkflow(mock.Anything, "other", "", workflows.IncidentSignalName, mock.Anything).Return(lost)
		var told []escalation.Notification
		w.env.OnActivity("Notify", mock.Anything, mock.Anything).Maybe().Return(func(_ context.Context, input activities.NotifyInput) error {
			defer w.alone()()
			told = append(told, input.Notification)
			return nil
		})
		chain, err := w.run(t, workflows.ChainInput{Trigger: escalation.TriggerScheduled})
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeKnown, chain.Outcome)
		if lost == nil {
			require.Empty(t, told, name)
			continue
		}
		require.Len(t, told, 1, name)
		require.Equal(t, escalation.NotifyWorse, told[0].Kind)
		require.Contains(t, told[0].Text, "has found incident-7 worse: it is down; chain other cannot be told")
	}
}

// TestReturnIsTold checks that a chain that still waits because of a healed incident is informed when the incident
// comes back.
func TestReturnIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concludes(escalation.VerdictEscalate, 0.01))
	incident := knownIncident(escalation.ChainWaiting)
	incident.ResolvedAt, incident.Resolution = newEnvironmentTime(), escalation.IncidentHealed
	w.incidents = []escalation.Incident{incident}
	var told []any
	w.env.OnSignalExternalWorkflow(mock.Anything, "other", "", workflows.IncidentSignalName, mock.Anything).Return(
		func(_, _, _, _ string, arg any) error {
			told = append(told, arg)
			return nil
		})
	chain, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeKnown, chain.Outcome)
	require.Equal(t, []any{workflows.IncidentSignal{
		IncidentID: "incident-7", Status: escalation.IncidentUnchanged, Note: "it has come back", ChainID: chain.ID,
	}}, told)
}

// TestHealedIncidentIsTold checks that a look informs a waiting chain about the healed incident.
func TestHealedIncidentIsTold(t *testing.T) {
	t.Parallel()
	for _, verdict := range []escalation.VerdictStatus{escalation.VerdictHealthy, escalation.VerdictEscalate} {
		w := newWorld(t, concludes(verdict, 0.01), concludes(escalation.VerdictResolved, 0.4))
		w.brief.Healed = []escalation.Incident{knownIncident(escalation.ChainWaiting)}
		w.opening.Healed = w.brief.Healed
		if verdict == escalation.VerdictHealthy {
			w.opening.Healed = nil
		}
		var told []any
		w.env.OnSignalExternalWorkflow(mock.Anything, "other", "", workflows.IncidentSignalName, mock.Anything).Return(
			func(_, _, _, _ string, arg any) error {
				told = append(told, arg)
				return nil
			})
		_, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Contains(t, told, workflows.IncidentSignal{
			IncidentID: "incident-7", Status: escalation.IncidentGone, ChainID: "default-test-workflow-id",
		})
	}
}

// TestRepairOfAnIssueTellsOtherChains checks that the chain of an issue informs other waiting chains of the repaired
// incident. It must not inform the chain that has split.
func TestRepairOfAnIssueTellsOtherChains(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concludes(escalation.VerdictResolved, 0.4))
	incident := knownIncident(escalation.ChainWaiting)
	incident.Chains = append(incident.Chains, escalation.IncidentChain{
		ChainID: "default-test-workflow-id", ChainProgress: escalation.ChainProgress{Status: escalation.ChainRepairing},
	})
	w.brief = escalation.IncidentBrief{Incidents: []escalation.Incident{incident}, Healed: []escalation.Incident{incident}}
	var told []string
	w.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, "", workflows.IncidentSignalName, mock.Anything).Return(
		func(_, chainID, _, _ string, _ any) error {
			told = append(told, chainID)
			return nil
		})
	w.answer(t)
	var toldParent bool
	w.env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: "issue"})
		err := workflow.ExecuteChildWorkflow(ctx, underTest, workflows.ChainInput{
			Trigger: escalation.TriggerIssue, StartTier: 2, Services: []string{"jellyfin"}, Incidents: []string{"incident-7"},
		}).Get(ctx, nil)
		toldParent = workflow.GetSignalChannel(ctx, workflows.IncidentSignalName).Len() > 0
		return err
	})
	require.NoError(t, w.env.GetWorkflowError())
	require.Equal(t, []string{"other"}, told)
	require.False(t, toldParent)
}

// atGateWith returns a world whose chain waits at a gate with incident-7 after Tier 1 and the given further tiers.
func atGateWith(t *testing.T, onHealed escalation.HealedAction, tiers ...tierScript) *world {
	t.Helper()
	w := newWorld(t, append([]tierScript{concludes(escalation.VerdictNeedsHuman, 0.01)}, tiers...)...)
	w.policy.Notify = true
	w.policy.Gate = escalation.GatePolicy{Timeout: escalation.Duration(time.Hour), OnTimeout: escalation.GateAbort, OnHealed: onHealed}
	w.brief.Incidents = []escalation.Incident{{ID: "incident-7", Services: []string{"jellyfin"}, Summary: "it is slow"}}
	return w
}

// news delivers a signal about incident-7 a while after the start.
func (w *world) news(after time.Duration, status escalation.IncidentNews) {
	w.env.RegisterDelayedCallback(func() {
		w.env.SignalWorkflow(workflows.IncidentSignalName, workflows.IncidentSignal{
			IncidentID: "incident-7", Status: status, Note: "look", ChainID: "look-9",
		})
	}, after)
}

// TestGateShowsNews checks that an open gate shows the findings of other chains, and that people are notified once when
// an incident becomes worse.
func TestGateShowsNews(t *testing.T) {
	t.Parallel()
	w := atGateWith(t, escalation.HealedKeep)
	told := map[escalation.NotificationKind]int{}
	w.env.OnActivity("Notify", mock.Anything, mock.Anything).Return(func(_ context.Context, input activities.NotifyInput) error {
		defer w.alone()()
		told[input.Notification.Kind]++
		require.Contains(t, input.Notification.Text, "incident-7")
		return nil
	})
	w.news(10*time.Minute, escalation.IncidentWorse)
	w.news(20*time.Minute, escalation.IncidentWorse)
	var gate escalation.Gate
	w.env.RegisterDelayedCallback(func() {
		answer, err := w.env.QueryWorkflow(workflows.GateQuery)
		require.NoError(t, err)
		require.NoError(t, answer.Get(&gate))
	}, 25*time.Minute)
	w.news(30*time.Minute, escalation.IncidentGone)
	w.env.RegisterDelayedCallback(func() {
		w.env.SignalWorkflow(workflows.IncidentSignalName, workflows.IncidentSignal{IncidentID: "incident-8", Status: escalation.IncidentGone})
		w.env.SignalWorkflow(workflows.IncidentSignalName, []byte("no JSON"))
	}, 40*time.Minute)

	chain, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome, "nobody answered")
	require.Len(t, chain.Sessions, 1, "the policy keeps the gate")
	require.Len(t, gate.News, 1)
	require.Equal(t, escalation.IncidentWorse, gate.News[0].Status)
	require.Equal(t, "look-9", gate.News[0].ChainID)
	require.Equal(t, escalation.IncidentGone, chain.Gates[0].News[0].Status)
	require.Equal(t, 1, told[escalation.NotifyWorse])
	messages := events(chain, escalation.EventIncident)
	require.Len(t, messages, 4)
	require.Contains(t, messages[0], "chain look-9 has found incident-7 worse: look")
	require.Contains(t, messages[2], "is refused: it is about an incident that is none of this chain's")
	require.Contains(t, messages[3], "is refused: its payload cannot be read")
}

// TestHealedGateCloses checks that a chain whose incidents have healed looks once more, and ends as resolved or asks
// again.
func TestHealedGateCloses(t *testing.T) {
	t.Parallel()
	for verdict, want := range map[escalation.VerdictStatus]escalation.Outcome{
		escalation.VerdictHealthy: escalation.OutcomeResolved, escalation.VerdictEscalate: escalation.OutcomeAborted,
	} {
		w := atGateWith(t, escalation.HealedClose, concludes(verdict, 0.01))
		kinds := map[escalation.NotificationKind]int{}
		w.env.OnActivity("Notify", mock.Anything, mock.Anything).Return(func(_ context.Context, input activities.NotifyInput) error {
			defer w.alone()()
			kinds[input.Notification.Kind]++
			return nil
		})
		w.news(10*time.Minute, escalation.IncidentGone)
		chain, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, want, chain.Outcome)
		require.Len(t, chain.Sessions, 2)
		require.Equal(t, escalation.PurposeRecheck, chain.Sessions[1].Purpose)
		require.True(t, w.ran[1].Recheck)
		require.Equal(t, escalation.GateRecheck, chain.Gates[0].Answer.Action)
		if verdict == escalation.VerdictHealthy {
			require.Len(t, chain.Gates, 1)
			require.Equal(t, 1, kinds[escalation.NotifyResolved], "people who were asked are told")
			continue
		}
		require.Len(t, chain.Gates, 2)
		require.Equal(t, escalation.RuleHealed, chain.Gates[1].Rule)
		require.Equal(t, escalation.GateNeedsHuman, chain.Gates[1].Source)
	}
}

// TestClosedIncidentIsToldToItsGate checks that a chain looks once more after a person has closed its incident, and
// that its events name the person.
func TestClosedIncidentIsToldToItsGate(t *testing.T) {
	t.Parallel()
	w := atGateWith(t, escalation.HealedClose, concludes(escalation.VerdictHealthy, 0.01))
	w.policy.Notify = false
	for after, actor := range map[time.Duration]string{5 * time.Minute: "a\u202eb", 10 * time.Minute: "ada"} {
		w.env.RegisterDelayedCallback(func() {
			w.env.SignalWorkflow(workflows.IncidentSignalName, workflows.IncidentSignal{
				IncidentID: "incident-7", Status: escalation.IncidentGone, Note: "new disk", Actor: actor,
			})
		}, after)
	}
	chain, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome)
	require.Equal(t, "ada", chain.Gates[0].News[0].Actor)
	messages := events(chain, escalation.EventIncident)
	require.Len(t, messages, 2)
	require.Contains(t, messages[0], "is refused: actor has characters that cannot be printed")
	require.Equal(t, "incident-7 was closed by ada: new disk", messages[1])
	require.Len(t, events(chain, escalation.EventGateOpened), 1)
}

// TestHealedWaitEnds checks that a chain that waits for a cooldown looks again as soon as its incident has healed.
func TestHealedWaitEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concludes(escalation.VerdictEscalate, 0.01), concludes(escalation.VerdictHealthy, 0.01))
	w.policy.Gate.OnHealed, w.policy.Cooldowns.MaxWait = escalation.HealedClose, escalation.Duration(6*time.Hour)
	w.facts = func(_ escalation.AdmissionRequest, _ time.Time) escalation.AdmissionFacts {
		return escalation.AdmissionFacts{Busy: []escalation.BusyService{{Service: "jellyfin", ChainID: "another"}}}
	}
	w.known = nil
	w.brief.Incidents = []escalation.Incident{{ID: "incident-7", Services: []string{"jellyfin"}}}
	w.news(20*time.Minute, escalation.IncidentGone)
	begin := w.env.Now()
	chain, err := w.run(t, workflows.ChainInput{Incidents: []string{"incident-7"}})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Len(t, chain.Sessions, 2)
	require.Less(t, chain.EndedAt.Sub(begin), time.Hour)
	var waited bool
	for _, recorded := range w.recorded {
		waited = waited || recorded.Progress != nil && recorded.Progress.Status == escalation.ChainWaiting
	}
	require.True(t, waited, "other chains see that it waits")
}

// TestHealedDuringASession checks the effect of news that arrive during a session on the gate after the session. If the
// session has a verdict, the news are outdated. If it has none, the chain looks once more, and only once.
func TestHealedDuringASession(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after    time.Duration
		recheck  tierScript
		sessions int
		want     escalation.Outcome
	}{
		"during the look":                       {15 * time.Minute, nil, 2, escalation.OutcomeAborted},
		"during a session without a verdict":    {45 * time.Minute, concludes(escalation.VerdictHealthy, 0.01), 3, escalation.OutcomeResolved},
		"and the recheck has no verdict either": {45 * time.Minute, ends(escalation.SessionTimedOut), 3, escalation.OutcomeAborted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, concludes(escalation.VerdictEscalate, 0.01), ends(escalation.SessionTimedOut))
			if tt.recheck != nil {
				w.tiers = append(w.tiers, tt.recheck)
			}
			w.tierTakes = 30 * time.Minute
			w.policy.Gate = escalation.GatePolicy{
				Timeout: escalation.Duration(time.Hour), OnTimeout: escalation.GateAbort, OnHealed: escalation.HealedClose,
			}
			w.opening.Incidents = []escalation.Incident{{ID: "incident-7", Services: []string{"jellyfin"}}}
			w.brief = w.opening
			w.news(tt.after, escalation.IncidentGone)
			chain, err := w.run(t, workflows.ChainInput{Incidents: []string{"incident-7"}})
			require.NoError(t, err)
			require.Equal(t, tt.want, chain.Outcome)
			require.Len(t, chain.Sessions, tt.sessions)
		})
	}
}

// TestHealedWithoutBudget checks that a chain whose incident has healed ends as resolved although its budget suffices
// for no other look. At a gate nobody would have anything to decide.
func TestHealedWithoutBudget(t *testing.T) {
	t.Parallel()
	w := atGateWith(t, escalation.HealedClose)
	w.policy.ChainBudgetUSD = 0.01
	w.env.OnActivity("Notify", mock.Anything, mock.Anything).Return(nil)
	w.news(10*time.Minute, escalation.IncidentGone)
	begin := w.env.Now()
	chain, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome)
	require.Contains(t, chain.Reason, "the problem was reported as healed, and tier 1 cannot look once more: ")
	require.Len(t, chain.Gates, 1)
	require.Less(t, chain.EndedAt.Sub(begin), 30*time.Minute)
}

// TestHealedAndBack checks that a chain asks a person if its incident has healed and come back before the chain could
// look once more.
func TestHealedAndBack(t *testing.T) {
	t.Parallel()
	for back, want := range map[bool]escalation.Outcome{false: escalation.OutcomeResolved, true: escalation.OutcomeHealthy} {
		w := atGateWith(t, escalation.HealedClose, concludes(escalation.VerdictHealthy, 0.01))
		w.policy.Cooldowns.MaxWait, w.policy.DayBudgetUSD = escalation.Duration(30*time.Minute), 1
		w.facts = func(request escalation.AdmissionRequest, _ time.Time) escalation.AdmissionFacts {
			if request.Purpose == escalation.PurposeRecheck {
				return escalation.AdmissionFacts{DayReservedUSD: 1}
			}
			return escalation.AdmissionFacts{}
		}
		w.env.OnActivity("Notify", mock.Anything, mock.Anything).Return(nil)
		w.news(10*time.Minute, escalation.IncidentGone)
		if back {
			w.news(20*time.Minute, escalation.IncidentUnchanged)
			w.env.RegisterDelayedCallback(func() {
				w.env.SignalWorkflow(workflows.ResolveGate, escalation.GateAnswer{GateID: "gate-2", Action: escalation.GateFix, Actor: "ada"})
			}, 50*time.Minute)
		}
		chain, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		require.Equal(t, want, chain.Outcome, chain.Reason)
		require.Len(t, chain.Gates, map[bool]int{false: 1, true: 2}[back])
		require.Len(t, chain.Sessions, len(chain.Gates), "the answer starts the tier, not another recheck")
	}
}

// TestNewsAreSentBeforeAWait checks that a look informs another chain of a worse incident as soon as the look is
// recorded. It must not wait until its own next session, which is refused for hours.
func TestNewsAreSentBeforeAWait(t *testing.T) {
	t.Parallel()
	for name, handoff := range map[string]bool{"resumed": false, "with a handoff that must be written": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, finding(escalation.Verdict{
				Status: escalation.VerdictEscalate, Summary: "down", Services: []string{"jellyfin", "nas"},
				Known: []escalation.KnownIncident{{ID: "incident-7", Status: escalation.IncidentWorse, Note: "it is down"}},
			}))
			if handoff {
				w.policy.Continuity, w.policy.ChainBudgetUSD = escalation.ContinuityHandoffOnly, 5
			}
			w.policy.Cooldowns.MaxWait = escalation.Duration(6 * time.Hour)
			w.facts = func(request escalation.AdmissionRequest, _ time.Time) escalation.AdmissionFacts {
				switch {
				case handoff && len(w.requests) > 2: // the session that would write the handoff, after the review of Tier 2
					return escalation.AdmissionFacts{ChainSpentUSD: 5}
				case !handoff && request.Tier > escalation.TierObserve:
					return escalation.AdmissionFacts{Busy: []escalation.BusyService{{Service: "nas", ChainID: "another"}}}
				}
				return escalation.AdmissionFacts{}
			}
			w.incidents = []escalation.Incident{knownIncident(escalation.ChainWaiting)}
			var told time.Time
			w.env.OnSignalExternalWorkflow(mock.Anything, "other", "", workflows.IncidentSignalName, mock.Anything).Return(
				func(_, _, _, _ string, _ any) error {
					told = w.env.Now()
					return nil
				})
			begin := w.env.Now()
			chain, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.False(t, told.IsZero())
			require.Less(t, told.Sub(begin), time.Minute)
			require.Len(t, chain.Sessions, 1)
		})
	}
}

// TestNewsOfTwoIncidents checks that a waiting chain keeps the news about each incident while it polls.
func TestNewsOfTwoIncidents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concludes(escalation.VerdictEscalate, 0.01), concludes(escalation.VerdictHealthy, 0.01))
	w.policy.Gate.OnHealed, w.policy.Cooldowns.MaxWait = escalation.HealedClose, escalation.Duration(6*time.Hour)
	polls := 0
	w.facts = func(request escalation.AdmissionRequest, _ time.Time) escalation.AdmissionFacts {
		polls++
		if request.Tier == escalation.TierObserve {
			return escalation.AdmissionFacts{}
		}
		return escalation.AdmissionFacts{Busy: []escalation.BusyService{{Service: "jellyfin", ChainID: "another"}}}
	}
	w.brief.Incidents = []escalation.Incident{{ID: "incident-7"}, {ID: "incident-8"}}
	w.news(20*time.Minute, escalation.IncidentGone)
	begin, pollsBetween := w.env.Now(), 0
	w.env.RegisterDelayedCallback(func() { pollsBetween -= polls }, 21*time.Minute)
	w.env.RegisterDelayedCallback(func() {
		pollsBetween += polls
		w.env.SignalWorkflow(workflows.IncidentSignalName, workflows.IncidentSignal{IncidentID: "incident-8", Status: escalation.IncidentGone})
	}, 2*time.Hour)
	chain, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Positive(t, pollsBetween)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Len(t, chain.Sessions, 2)
	require.Less(t, chain.EndedAt.Sub(begin), 3*time.Hour)
}

// TestReturnedIncident checks a fault that comes back too often. The repair must begin with Tier 3, or with a person
// who sees the history.
func TestReturnedIncident(t *testing.T) {
	t.Parallel()
	now := newEnvironmentTime()
	incident := escalation.Incident{
		ID: "incident-7", Services: []string{"jellyfin"}, Summary: "it is slow", ResolvedAt: now, Resolution: escalation.IncidentRepaired,
		Returns: []time.Time{now.Add(-time.Hour), now.Add(-2 * time.Hour)},
		Chains:  []escalation.IncidentChain{{ChainID: "before", Tier: 2, Did: "restarted it"}},
	}
	returned := func(tiers ...tierScript) *world {
		w := newWorld(t, append([]tierScript{concludes(escalation.VerdictEscalate, 0.01)}, tiers...)...)
		w.env.SetStartTime(now)
		w.policy.Returns = escalation.Limit{Max: 3, Window: escalation.Duration(24 * time.Hour)}
		w.policy.Gate.Timeout = escalation.Duration(time.Hour)
		w.incidents = []escalation.Incident{incident}
		return w
	}
	w := returned(concludes(escalation.VerdictResolved, 2))
	w.opening.Repairs = []escalation.PastRepair{{ChainID: "before", Tier: 2, Did: "restarted it"}}
	chain, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome)
	require.Equal(t, escalation.TierFullRepair, chain.Sessions[1].Tier)
	require.Equal(t, w.opening.Repairs, w.ran[1].Repairs)

	w = returned(concludes(escalation.VerdictResolved, 0.4))
	w.policy.MaxTier = escalation.TierSafeRepair
	w.env.RegisterDelayedCallback(func() {
		w.env.SignalWorkflow(workflows.ResolveGate, escalation.GateAnswer{GateID: "gate-1", Action: escalation.GateFix, Guidance: "swap the disk", Actor: "ada"})
	}, time.Minute)
	chain, err = w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome)
	require.Equal(t, escalation.RuleReturned, chain.Gates[0].Rule)
	require.Contains(t, chain.Gates[0].Reason, "has come back 3 times within 24 h after repairs")
	require.Len(t, chain.Gates[0].History, 1)
	require.Contains(t, chain.Gates[0].History[0], "restarted it")
	require.Equal(t, escalation.TierSafeRepair, chain.Gates[0].Tier)
	require.Equal(t, escalation.TierSafeRepair, w.ran[1].Tier)
	require.Equal(t, "swap the disk", w.ran[1].Guidance)
}

// newEnvironmentTime returns a fixed time for the start of a chain.
func newEnvironmentTime() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// TestSplitLeavesKnownIssues checks a split with several issues. Only new issues get chains, each with its incident.
// The chain of an issue that has come back too often asks a person first.
func TestSplitLeavesKnownIssues(t *testing.T) {
	t.Parallel()
	s := newSplitting(t, func(string) (escalation.Chain, error) {
		return escalation.Chain{Outcome: escalation.OutcomeResolved, Reason: "repaired"}, nil
	}, 2, 2, 2)
	now := newEnvironmentTime()
	s.env.SetStartTime(now)
	s.policy.MaxTier = escalation.TierSafeRepair
	s.policy.Returns = escalation.Limit{Max: 1, Window: escalation.Duration(time.Hour)}
	services := [][]string{{"service-1"}, {"service-2"}, {"service-3"}}
	known := knownIncident(escalation.ChainWaiting)
	known.Services = services[1]
	s.incidents = []escalation.Incident{known, {
		ID: "incident-8", Services: services[2], ResolvedAt: now, Resolution: escalation.IncidentRepaired,
		Chains: []escalation.IncidentChain{{ChainID: "before", Tier: 2, Did: "restarted it"}},
	}}
	s.brief.Incidents = []escalation.Incident{{ID: "incident-8", Services: services[2]}, {ID: "incident-9", Services: services[0]}}
	chain, err := s.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeKnown, chain.Outcome)
	require.Equal(t, escalation.OutcomeKnown, chain.Issues[1].Outcome)
	require.Contains(t, chain.Issues[1].Reason, "incident-7")
	require.Len(t, s.inputs, 2)
	asked := map[string]bool{}
	for _, input := range s.inputs {
		require.Len(t, input.Incidents, 1)
		asked[input.Incidents[0]] = input.Ask != nil
	}
	require.Equal(t, map[string]bool{"incident-8": true, "incident-9": false}, asked)
	require.Equal(t, []string{"incident-7"}, s.closed[0].Progress.Leaves)
	require.Equal(t, escalation.ChainRepairing, s.closed[0].Progress.Status)
}

// TestIssuesOfOneService checks that each issue of a service gets its own incident, although the agent names no kind. A
// known issue gets none.
func TestIssuesOfOneService(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"all are new": false, "the first is known": true} {
		s := newSplitting(t, func(string) (escalation.Chain, error) {
			return escalation.Chain{Outcome: escalation.OutcomeResolved}, nil
		})
		s.tiers = []tierScript{func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
			report, err := findsIssues(2, 2, 2)(t, input)
			for i := range report.Verdict.Issues {
				report.Verdict.Issues[i].Services = []string{"jellyfin"}
			}
			return report, err
		}}
		want := []string{"incident-7", "incident-8", "incident-9"}
		for i, id := range want {
			s.brief.Incidents = append(s.brief.Incidents, escalation.Incident{
				ID: id, Services: []string{"jellyfin"}, Summary: fmt.Sprintf("issue %d", i+1),
			})
		}
		if known {
			s.incidents = []escalation.Incident{knownIncident(escalation.ChainWaiting)}
			s.brief.Incidents, want[0] = s.brief.Incidents[1:], ""
		}
		chain, err := s.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		for i, issue := range chain.Issues {
			require.Equal(t, want[i], issue.IncidentID, "%s: %s", name, issue.Summary)
		}
		for _, input := range s.inputs {
			require.Contains(t, want, input.Incidents[0])
		}
		require.Len(t, s.inputs, len(s.brief.Incidents))
	}
}

// TestSplitWithNamedIncidents checks known incidents in a verdict that are not among its issues. If a chain takes care
// of such an incident, that chain is informed that the incident is worse. If no chain does, the incident gets a chain.
func TestSplitWithNamedIncidents(t *testing.T) {
	t.Parallel()
	s := newSplitting(t, func(string) (escalation.Chain, error) {
		return escalation.Chain{Outcome: escalation.OutcomeResolved}, nil
	})
	s.tiers = []tierScript{func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		report, err := findsIssues(2, 2)(t, input)
		report.Verdict.Known = []escalation.KnownIncident{
			{ID: "incident-7", Status: escalation.IncidentWorse, Note: "it is down"}, {ID: "incident-8", Status: escalation.IncidentUnchanged},
		}
		return report, err
	}}
	abandoned := escalation.Incident{ID: "incident-8", Services: []string{"nas"}, Summary: "its fan is loud"}
	s.incidents = []escalation.Incident{knownIncident(escalation.ChainWaiting), abandoned}
	s.brief.Incidents = []escalation.Incident{abandoned}
	var told []any
	s.env.OnSignalExternalWorkflow(mock.Anything, "other", "", workflows.IncidentSignalName, mock.Anything).Return(
		func(_, _, _, _ string, arg any) error {
			told = append(told, arg)
			return nil
		})
	chain, err := s.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, []any{workflows.IncidentSignal{
		IncidentID: "incident-7", Status: escalation.IncidentWorse, Note: "it is down", ChainID: chain.ID,
	}}, told)
	require.Equal(t, []string{"incident-7"}, s.closed[0].Progress.Leaves)
	require.Len(t, chain.Issues, 3)
	require.Equal(t, "incident-8", chain.Issues[2].IncidentID)
	require.Equal(t, "its fan is loud", chain.Issues[2].Summary)
	require.Len(t, chain.Sessions[0].Verdict.Issues, 2, "the record of the verdict stays as it is")
}

// TestEndedIssueIsNotRepaired checks that a split chain records the end of an issue's chain at once, while the chains
// of other issues continue. From then on it must not count as repairing the incident of that issue.
func TestEndedIssueIsNotRepaired(t *testing.T) {
	t.Parallel()
	s := newSplitting(t, nil, 2, 2)
	s.brief.Incidents = []escalation.Incident{
		{ID: "incident-8", Services: []string{"service-1"}}, {ID: "incident-9", Services: []string{"service-2"}},
	}
	var during []activities.RecordEventsInput
	s.issue = func(ctx workflow.Context, input workflows.ChainInput) (escalation.Chain, error) {
		if input.Services[0] == "service-1" {
			return escalation.Chain{Outcome: escalation.OutcomeFailed, Reason: "it broke off"}, nil
		}
		err := workflow.Sleep(ctx, time.Hour)
		unlock := s.alone()
		during = slices.Clone(s.recorded)
		unlock()
		return escalation.Chain{Outcome: escalation.OutcomeResolved}, err
	}
	chain, err := s.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, "incident-8", chain.Issues[0].IncidentID)
	require.Len(t, during, 1)
	progress := during[0].Progress
	require.Equal(t, []string{"incident-8"}, progress.Only)
	require.Equal(t, escalation.ChainEnded, progress.Status)
	require.Equal(t, escalation.OutcomeFailed, progress.Outcome)
	require.Equal(t, "it broke off", progress.Reason)
	last := s.recorded[len(s.recorded)-1].Progress
	require.Empty(t, last.Only)
	require.Equal(t, escalation.ChainEnded, last.Status)
}

// TestRefusedChainOwnsItsIncident checks that the chain of an issue owns its incident even while it waits before its
// first session.
func TestRefusedChainOwnsItsIncident(t *testing.T) {
	t.Parallel()
	for name, blocked := range map[string]bool{"busy": false, "above the highest tier": true} {
		w := newWorld(t, concludes(escalation.VerdictResolved, 0.4))
		w.policy.Gate.Timeout, w.policy.Cooldowns.MaxWait = escalation.Duration(time.Hour), escalation.Duration(6*time.Hour)
		if blocked {
			w.policy.MaxTier = escalation.TierObserve
		}
		w.facts = func(_ escalation.AdmissionRequest, _ time.Time) escalation.AdmissionFacts {
			return escalation.AdmissionFacts{Busy: []escalation.BusyService{{Service: "jellyfin", ChainID: "another"}}}
		}
		_, err := w.run(t, workflows.ChainInput{
			Trigger: escalation.TriggerIssue, StartTier: 2, Services: []string{"jellyfin"}, Incidents: []string{"incident-7"},
		})
		require.NoError(t, err)
		require.Equal(t, escalation.ChainWaiting, w.recorded[0].Progress.Status, name)
		require.Equal(t, []string{"incident-7"}, w.recorded[0].Progress.Owns, name)
	}
}

// TestAskFirst checks that the chain of an issue that has come back begins at a gate with the history.
func TestAskFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.policy.Gate.Timeout = escalation.Duration(time.Hour)
	chain, err := w.run(t, workflows.ChainInput{
		Trigger: escalation.TriggerIssue, StartTier: 2, Services: []string{"jellyfin"}, Incidents: []string{"incident-7"},
		Ask: &workflows.AskInput{Reason: "it has come back", History: []string{"restarted it"}},
	})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	require.Empty(t, chain.Sessions)
	require.Equal(t, []string{"restarted it"}, chain.Gates[0].History)
	require.Equal(t, "it has come back", chain.Gates[0].Reason)
	require.Equal(t, escalation.ChainWaiting, w.recorded[0].Progress.Status)
	require.Equal(t, []string{"incident-7"}, w.recorded[0].Progress.Owns, "no session has linked the chain to its incident")

	_, err = newWorld(t).run(t, workflows.ChainInput{Ask: &workflows.AskInput{}})
	require.ErrorContains(t, err, "ask is not for people")
	_, err = newWorld(t).run(t, workflows.ChainInput{Incidents: []string{"seven"}})
	require.ErrorContains(t, err, `"seven" is no incident`)
}

// TestRequestedTierRepairsTheKnown checks that a person's request for a tier counts although the fault is known.
func TestRequestedTierRepairsTheKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictResolved, 2))
	w.tierTakes = time.Minute
	w.incidents = []escalation.Incident{knownIncident(escalation.ChainWaiting)}
	w.env.RegisterDelayedCallback(func() {
		w.env.SignalWorkflow(workflows.EscalateSignalName, workflows.EscalateSignal{ToTier: 3})
	}, time.Second)
	chain, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome)
	require.Empty(t, w.ran[1].Leave)
	require.Nil(t, w.closed[0].Progress)
}
