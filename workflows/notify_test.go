package workflows_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// audience receives the notifications of a test.
type audience struct {
	mu   sync.Mutex
	got  []escalation.Notification
	fail error
}

// listen enables notifications in w and returns their receiver.
func (w *world) listen() *audience {
	a := &audience{}
	w.policy.Notify = true
	w.env.OnActivity("Notify", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, input activities.NotifyInput) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.got = append(a.got, input.Notification)
			return a.fail
		})
	return a
}

func TestPeopleAreToldHowAChainEnded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tiers []tierScript
		input workflows.ChainInput
		want  escalation.NotificationKind
	}{
		"a person is needed":   {tiers: []tierScript{concludes(escalation.VerdictNeedsHuman, 0.03)}, want: escalation.NotifyNeedsHuman},
		"its budget is spent":  {tiers: []tierScript{ends(escalation.SessionBudgetExhausted)}, want: escalation.NotifyBudgetSpent},
		"time is up":           {tiers: []tierScript{ends(escalation.SessionTimedOut)}, want: escalation.NotifyNeedsHuman},
		"a tier failed":        {tiers: []tierScript{concludes(escalation.VerdictFailed, 0.03)}, want: escalation.NotifyFailed},
		"tier 2 resolved it":   {tiers: []tierScript{concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictResolved, 0.4)}, want: escalation.NotifyResolved},
		"tier 1 resolved it":   {tiers: []tierScript{concludes(escalation.VerdictResolved, 0.03)}},
		"all is well":          {tiers: []tierScript{concludes(escalation.VerdictHealthy, 0.03)}},
		"a dry run":            {tiers: []tierScript{concludes(escalation.VerdictEscalate, 0.03)}, input: workflows.ChainInput{DryRun: true}},
		"a dry run that asks":  {tiers: []tierScript{concludes(escalation.VerdictNeedsHuman, 0.03)}, input: workflows.ChainInput{DryRun: true}},
		"a dry run that fails": {tiers: []tierScript{concludes(escalation.VerdictFailed, 0.03)}, input: workflows.ChainInput{DryRun: true}},
		"it was stopped":       {tiers: []tierScript{ends(escalation.SessionStopped)}},
		"beyond the top tier":  {tiers: []tierScript{concludes(escalation.VerdictEscalate, 0.03)}, input: workflows.ChainInput{MaxTier: 1}, want: escalation.NotifyBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.tiers...)
			people := w.listen()
			result, err := w.run(t, tt.input)
			require.NoError(t, err)
			if tt.want == "" {
				require.Empty(t, people.got)
				return
			}
			require.Len(t, people.got, 1)
			told := people.got[0]
			require.Equal(t, tt.want, told.Kind)
			require.Equal(t, tt.want.Severity(), told.Severity)
			require.Equal(t, result.ID, told.ChainID)
			require.NotEmpty(t, told.Key)
			require.Contains(t, told.Title, "Claude Ops: "+tt.want.Headline())
			require.Contains(t, told.Text, result.Reason)
			require.Contains(t, told.Text, "tier 1 (haiku)")
			require.Contains(t, told.Text, "Cost so far: $")
			require.Contains(t, told.Then, "Look at it with: claudeops chain "+result.ID)
		})
	}
}

// TestPeopleAreToldWhereTheWorkIs lets Tier 2 leave commits in a worktree. An event and the notification must name the
// worktree.
func TestPeopleAreToldWhereTheWorkIs(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{true, false} {
		repaired := func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
			t.Helper()
			report, err := concludes(escalation.VerdictResolved, 0.4)(t, input)
			report.Worktree = &escalation.Worktree{Path: "/worktrees/1", Branch: "claudeops/1", Origin: "/srv/infra", Kept: kept, Commits: 2}
			return report, err
		}
		w := newWorld(t, concludes(escalation.VerdictEscalate, 0.03), repaired)
		people := w.listen()
		result, err := w.run(t, workflows.ChainInput{})
		require.NoError(t, err)
		told := 0
		for _, event := range w.events {
			if event.Kind == escalation.EventWorktreeKept {
				told++
				require.Equal(t, result.Last().SessionID, event.SessionID)
				require.Contains(t, event.Message, "2 commits on the branch claudeops/1")
			}
		}
		require.Equal(t, kept, told == 1)
		require.Len(t, people.got, 1)
		require.Equal(t, kept, strings.Contains(people.got[0].Text, "2 commits on the branch claudeops/1"), people.got[0].Text)
	}
}

// TestEscalateSignalAfterTheEnd sends the signal while the chain only waits for its notifications.
func TestEscalateSignalAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	w.policy.Notify = true
	w.env.OnActivity("Notify", mock.Anything, mock.Anything).After(15 * time.Second).Return(nil)
	w.signalAfter(5*time.Second, `{"to_tier":2}`)
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeNeedsHuman, result.Outcome)
	requireRefusedSignal(t, result, "the chain has ended")
	require.Equal(t, result.Events, w.events, "it is recorded")
}

// TestPeopleAreToldOfARefusalThatNobodySees refuses chains because of the policy. A person who starts a chain by hand
// sees the refusal. The parent of an issue's chain reports it. In all other cases people must be notified.
func TestPeopleAreToldOfARefusalThatNobodySees(t *testing.T) {
	t.Parallel()
	for trigger, told := range map[escalation.Trigger]int{
		escalation.TriggerScheduled: 1, "alertmanager": 1, escalation.TriggerManual: 0, "": 0, escalation.TriggerIssue: 0,
	} {
		t.Run("trigger "+string(trigger), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			people := w.listen()
			var outcome string
			w.env.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
				attributes, _ := args.Get(0).(temporal.SearchAttributes)
				outcome, _ = attributes.GetKeyword(workflows.OutcomeAttribute)
			}).Return(nil)
			_, err := w.run(t, workflows.ChainInput{Trigger: trigger, Repository: "gone"})
			const reason = `repository "gone" is none that CLAUDEOPS_REPOSITORIES lists for the workers`
			require.ErrorContains(t, err, reason)
			require.Empty(t, w.ran)
			require.Len(t, people.got, told)
			require.Len(t, w.events, told, "an event explains it")
			require.Equal(t, string(escalation.OutcomeFailed), outcome)
			if told == 0 {
				return
			}
			require.Equal(t, escalation.NotifyFailed, people.got[0].Kind)
			require.Contains(t, people.got[0].Text, `repository "gone" is none`)
			require.Equal(t, escalation.SeverityCritical, w.events[0].Severity)
			require.Contains(t, w.events[0].Message, reason)
		})
	}
}

func TestNobodyToTellIsNoActivity(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	people := w.listen()
	w.policy.Notify = false
	_, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Empty(t, people.got)
}

// TestADeadAddressKeepsNoChainOpen checks that a chain ends soon although a service does not answer: events say that
// somebody was not told and why, the notification is tried for an hour, and another event says how that ended.
func TestADeadAddressKeepsNoChainOpen(t *testing.T) {
	t.Parallel()
	const why = "1 of 2 places in CLAUDEOPS_NOTIFY_URLS were not notified: ntfy at ntfy.example.org: connection refused"
	for name, answersAgain := range map[string]bool{"for good": false, "for some minutes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
			people := w.listen()
			people.fail = errors.New(why)
			began := w.env.Now()
			var delivery workflows.DeliveryInput
			w.env.OnWorkflow(workflows.DeliveryWorkflow, mock.Anything, mock.Anything).Return(
				func(_ workflow.Context, input workflows.DeliveryInput) error {
					delivery = input
					return nil
				})
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeNeedsHuman, result.Outcome)
			require.Less(t, w.env.Now().Sub(began), time.Minute, "the chain has ended")
			last := result.Events[len(result.Events)-1]
			require.Equal(t, escalation.EventNotNotified, last.Kind)
			require.Equal(t, escalation.SeverityWarning, last.Severity)
			require.Equal(t, "not everybody was told that a person is needed: "+why+"; it is tried again for an hour", last.Message)
			require.Equal(t, result.Events, w.events, "the event is recorded, too")
			require.Equal(t, people.got[0], delivery.Notification, "the key is the same, so that nobody is told twice")

			later := newWorld(t)
			people = later.listen()
			people.fail = errors.New(why)
			if answersAgain {
				later.env.RegisterDelayedCallback(func() {
					people.mu.Lock()
					defer people.mu.Unlock()
					people.fail = nil
				}, 10*time.Minute)
			}
			later.answer(t)
			began = later.env.Now()
			later.env.ExecuteWorkflow(workflows.DeliveryWorkflow, delivery)
			require.NoError(t, later.env.GetWorkflowError())
			require.Equal(t, delivery.Notification, people.got[0])
			require.Len(t, later.events, 1)
			event := later.events[0]
			require.Equal(t, result.ID, event.ChainID)
			if answersAgain {
				require.Equal(t, escalation.EventNotified, event.Kind)
				require.Equal(t, "everybody has been told now that a person is needed", event.Message)
				return
			}
			require.Greater(t, len(people.got), 20, "it is tried for a long time")
			require.LessOrEqual(t, later.env.Now().Sub(began), 2*time.Hour, "and not for ever")
			require.Equal(t, escalation.EventNotNotified, event.Kind)
			require.Contains(t, event.Message, why+"; it was tried for an hour, and is not tried again")
		})
	}
}

// TestAGateShowsThatNobodyWasTold checks that the event is recorded while the gate is open.
func TestAGateShowsThatNobodyWasTold(t *testing.T) {
	t.Parallel()
	w := newGatedWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	w.listen().fail = errors.New("nobody answers")
	w.env.OnWorkflow(workflows.DeliveryWorkflow, mock.Anything, mock.Anything).Return(nil)
	var untold []string
	w.env.RegisterDelayedCallback(func() {
		untold = messagesOf(w.events, escalation.EventNotNotified)
		w.env.CancelWorkflow()
	}, 10*time.Minute)
	_, err := w.run(t, workflows.ChainInput{})
	require.Error(t, err)
	require.Equal(t, []string{"not everybody was told that a person is needed: nobody answers; it is tried again for an hour"}, untold)
}

// TestCancellingEndsTheWait checks that cancelling ends a chain that only waits for an unavailable chat service.
func TestCancellingEndsTheWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concludes(escalation.VerdictNeedsHuman, 0.03))
	w.listen().fail = errors.New("nobody answers")
	w.env.OnWorkflow(workflows.DeliveryWorkflow, mock.Anything, mock.Anything).Return(nil)
	began := w.env.Now()
	w.env.RegisterDelayedCallback(w.env.CancelWorkflow, 5*time.Second)
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeNeedsHuman, result.Outcome, "it had ended before")
	require.Less(t, w.env.Now().Sub(began), 10*time.Second)
	require.Contains(t, result.Events[len(result.Events)-1].Message, "it was still being sent; it is tried again for an hour")
	require.Equal(t, result.Events, w.events)
}

func TestAChainThatBreaksOffIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concludes(escalation.VerdictHealthy, 0.03))
	people := w.listen()
	w.env.OnActivity("OpenSession", mock.Anything, mock.Anything).Return(escalation.AdmissionResult{},
		temporal.NewNonRetryableApplicationError("the record is refused", activities.ErrorTypeRecords, nil))
	_, err := w.run(t, workflows.ChainInput{})
	require.Error(t, err)
	require.Len(t, people.got, 1)
	require.Equal(t, escalation.NotifyFailed, people.got[0].Kind)
	require.Contains(t, people.got[0].Text, "the chain broke off: the record is refused")
}

// TestAgentsWordsStayWords checks that notifications remove markup from an agent's text, which may quote a log line of
// an attacker.
func TestAgentsWordsStayWords(t *testing.T) {
	t.Parallel()
	hostile := "all [well](https://evil.example/x) <https://evil.example|here> @everyone\x1b[31m\u202e `rm` *now*\n\n# Resolved " + strings.Repeat("x", 5_000)
	w := newWorld(t, func(_ *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		return escalation.Report{
			Status: escalation.SessionCompleted, ReportedSessionID: input.SessionID,
			Verdict: &escalation.Verdict{Status: escalation.VerdictNeedsHuman, Summary: hostile, Services: []string{"[a](http://evil.example)", "b", "c", "d"}},
		}, nil
	})
	people := w.listen()
	_, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	told := people.got[0]
	for _, text := range []string{told.Title, strings.ReplaceAll(told.Text+told.Then, "\n", "")} {
		require.NotContains(t, text, "://")
		require.False(t, strings.ContainsAny(text, "[]<>@`*#|\x1b\u202e\n"), text)
	}
	require.Contains(t, told.Title, "and 1 more")
	require.Less(t, len(told.Text), 1_500)
	require.Equal(t, 3, strings.Count(told.Text, "\n"), told.Text)
}
