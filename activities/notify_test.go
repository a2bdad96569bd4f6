package activities_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// fakeTarget fails the first calls of Send. The field fails is their number.
type fakeTarget struct {
	id    string
	fails int
	got   []escalation.Notification
}

var _ activities.NotifyTarget = (*fakeTarget)(nil)

func (f *fakeTarget) ID() string { return f.id }

func (f *fakeTarget) Send(_ context.Context, notification escalation.Notification) error {
	f.got = append(f.got, notification)
	if len(f.got) <= f.fails {
		return errors.New(f.id + ": 502 Bad Gateway")
	}
	return nil
}

// fakeDeliveries keeps deliveries in memory.
type fakeDeliveries struct {
	mu              sync.Mutex
	forgets         bool // what fails to be written is not known later
	delivered       []string
	failRead, failW error
	acknowledged    bool
}

var _ activities.DeliveryLog = (*fakeDeliveries)(nil)

func (f *fakeDeliveries) Delivered(context.Context, string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.delivered), f.failRead
}

func (f *fakeDeliveries) RecordDelivery(_ context.Context, _, target string, _ time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.forgets || f.failW == nil {
		f.delivered = append(f.delivered, target)
	}
	return f.failW
}

func (f *fakeDeliveries) Acknowledged(_ context.Context, chainID string) (bool, error) {
	return f.acknowledged && chainID == "chain/1", nil
}

func runNotify(t *testing.T, notifications *activities.Notifications) error {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(notifications)
	_, err := env.ExecuteActivity(notifications.Notify, activities.NotifyInput{Notification: escalation.Notification{
		Key: "run/1", Kind: escalation.NotifyResolved, Title: "a title", Text: "a text",
	}})
	return err
}

func TestNotifyRepeatsOnlyWhatFailed(t *testing.T) {
	t.Parallel()
	down, up, also := &fakeTarget{id: "ntfy-1", fails: 2}, &fakeTarget{id: "generic-2"}, &fakeTarget{id: "apprise-3", fails: 1}
	notifications := &activities.Notifications{
		Targets: []activities.NotifyTarget{down, up, also}, Deliveries: &fakeDeliveries{}, UIURL: "https://ui.example.org/",
	}
	require.ErrorContains(t, runNotify(t, notifications),
		"2 of 3 places in CLAUDEOPS_NOTIFY_URLS were not notified: ntfy-1: 502 Bad Gateway; apprise-3: 502 Bad Gateway")
	require.ErrorContains(t, runNotify(t, notifications), "1 of 3 places in CLAUDEOPS_NOTIFY_URLS were not notified: ntfy-1")
	require.NoError(t, runNotify(t, notifications))
	require.NoError(t, runNotify(t, notifications), "once more changes nothing")
	require.Len(t, down.got, 3)
	require.Len(t, up.got, 1)
	require.Len(t, also.got, 2)
	require.Equal(t, "a title", up.got[0].Title)
	require.Equal(t, "a text", up.got[0].Text)
	require.Contains(t, up.got[0].Then, "Web UI: https://ui.example.org/namespaces/")
}

func TestNotifyWithoutItsLog(t *testing.T) {
	t.Parallel()
	away, refused := errors.New("the database is away"), errors.New("the record is invalid")
	target := &fakeTarget{id: "ntfy-1"}
	log := &fakeDeliveries{failRead: away}
	notifications := &activities.Notifications{
		Targets: []activities.NotifyTarget{target}, Deliveries: log, IsPermanent: func(err error) bool { return errors.Is(err, refused) },
	}
	require.ErrorContains(t, runNotify(t, notifications), "the database is away")
	require.Empty(t, target.got, "what cannot be remembered is not sent")

	log.failRead, log.failW = nil, refused
	err := runNotify(t, notifications)
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	require.True(t, application.NonRetryable(), "else each attempt would send it again")
}

// notifyFor runs Notify as workflows do, with retries for an hour.
func notifyFor(t *testing.T, notifications *activities.Notifications) error {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(notifications)
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute, ScheduleToCloseTimeout: time.Hour,
			RetryPolicy: &temporal.RetryPolicy{InitialInterval: 2 * time.Second, BackoffCoefficient: 2, MaximumInterval: 2 * time.Minute, MaximumAttempts: 50},
		})
		return workflow.ExecuteActivity(ctx, notifications.Notify, activities.NotifyInput{Notification: escalation.Notification{
			Key: "run/1", Kind: escalation.NotifyResolved, Title: "a title", Text: "a text",
		}}).Get(ctx, nil)
	})
	require.True(t, env.IsWorkflowCompleted())
	return env.GetWorkflowError()
}

// TestNotifyWhileRecordsCannotBeWritten checks that the attempts of an activity know from its heartbeats who has
// received the notification, although the records do not keep it.
func TestNotifyWhileRecordsCannotBeWritten(t *testing.T) {
	t.Parallel()
	log := &fakeDeliveries{failW: errors.New("the disk is full"), forgets: true}
	first, second, dead := &fakeTarget{id: "ntfy-1"}, &fakeTarget{id: "generic-2"}, &fakeTarget{id: "apprise-3", fails: 1000}
	err := notifyFor(t, &activities.Notifications{Targets: []activities.NotifyTarget{first, dead, second}, Deliveries: log})
	require.ErrorContains(t, err, "1 of 3 places in CLAUDEOPS_NOTIFY_URLS were not notified: apprise-3")
	require.Len(t, first.got, 1)
	require.Len(t, second.got, 1)
	require.Greater(t, len(dead.got), 20)
}

func TestOmittedCycles(t *testing.T) {
	t.Parallel()
	now := activities.OmittedCycles{Overlapped: 3, Late: 2}
	require.Equal(t, activities.OmittedCycles{Overlapped: 2, Late: 2}, now.Since(activities.OmittedCycles{Overlapped: 1}))
	require.Zero(t, now.Since(now).Total())
	require.Equal(t, activities.OmittedCycles{Overlapped: 1}, activities.OmittedCycles{Overlapped: 1}.Since(now), "it was created anew")
	require.Equal(t, "cycles that did not take place: 3 skipped because the one before still ran, 2 missed while Temporal was away", now.String())
}

// TestNobodyIsRemindedOfWhatIsAcknowledged checks that only reminders are left out.
func TestNobodyIsRemindedOfWhatIsAcknowledged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		acknowledged, reminder bool
		told                   int
	}{
		"a reminder":                          {false, true, 1},
		"a reminder of what is acknowledged":  {true, true, 0},
		"the first word of what is known":     {true, false, 1},
		"the first word of what is not known": {false, false, 1},
	} {
		target := &fakeTarget{id: "ntfy-1"}
		notifications := &activities.Notifications{
			Targets: []activities.NotifyTarget{target}, Deliveries: &fakeDeliveries{acknowledged: c.acknowledged},
		}
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		env.RegisterActivity(notifications)
		_, err := env.ExecuteActivity(notifications.Notify, activities.NotifyInput{Notification: escalation.Notification{
			Key: "run/1", Kind: escalation.NotifyNeedsHuman, ChainID: "chain/1", Reminder: c.reminder,
		}})
		require.NoError(t, err, name)
		require.Len(t, target.got, c.told, name)
	}
}

// TestNotificationsLeadToTheirPage checks which page a notification names: at a gate that of the gate, without a way to
// act on it.
func TestNotificationsLeadToTheirPage(t *testing.T) {
	t.Parallel()
	for kind, want := range map[escalation.NotificationKind]string{
		escalation.NotifyNeedsHuman:  "https://ops.example.org/chains/chain%2F1#gate",
		escalation.NotifyWorse:       "https://ops.example.org/chains/chain%2F1#gate",
		escalation.NotifyFailed:      "https://ops.example.org/chains/chain%2F1",
		escalation.NotifyResolved:    "https://ops.example.org/chains/chain%2F1",
		escalation.NotifyBlocked:     "https://ops.example.org/chains/chain%2F1",
		escalation.NotifyBudgetSpent: "https://ops.example.org/chains/chain%2F1",
		escalation.NotifyCycleMissed: "https://ops.example.org/schedules",
		escalation.NotifySnoozeEnded: "https://ops.example.org/incidents/incident-7",
	} {
		target := &fakeTarget{id: "ntfy-1"}
		notifications := &activities.Notifications{
			Targets: []activities.NotifyTarget{target}, Deliveries: &fakeDeliveries{}, PagesURL: "https://ops.example.org/",
		}
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		env.RegisterActivity(notifications)
		_, err := env.ExecuteActivity(notifications.Notify, activities.NotifyInput{Notification: escalation.Notification{
			Key: "run/1", Kind: kind, ChainID: "chain/1", IncidentID: "incident-7", Text: "a text",
		}})
		require.NoError(t, err)
		require.Equal(t, "a text", target.got[0].Text)
		require.Equal(t, "Page: "+want, target.got[0].Then)
	}
}
