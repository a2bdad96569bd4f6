package activities

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/claudeops/claudeops/internal/escalation"
)

// NotifyTarget is one destination of notifications.
type NotifyTarget interface {
	// ID identifies the target among all targets. The ID stays the same after a restart and contains no secret.
	ID() string
	// Send delivers the notification, and returns when the target has accepted it. An error names the target. It must
	// not contain a secret, because the workflow history contains the error.
	Send(ctx context.Context, notification escalation.Notification) error
}

// DeliveryLog records which targets have received which notifications.
type DeliveryLog interface {
	// Delivered returns the IDs of the targets that have received the notification with this key.
	Delivered(ctx context.Context, key string) ([]string, error)
	// RecordDelivery records that target has received the notification. It is idempotent.
	RecordDelivery(ctx context.Context, key, target string, at time.Time) error
	// Acknowledged reports whether a chain works on incidents, and people have acknowledged all of them.
	Acknowledged(ctx context.Context, chainID string) (bool, error)
}

// Notifications notifies people.
type Notifications struct {
	Targets    []NotifyTarget
	Deliveries DeliveryLog
	// IsPermanent reports whether an error of Deliveries is permanent, so that a retry would fail, too.
	IsPermanent func(error) bool
	// PagesURL is the address of the pages, and UIURL that of Temporal's Web UI. Notifications contain no link to what
	// is empty.
	PagesURL, UIURL string
}

// NotifyInput is the notification to send.
type NotifyInput struct {
	escalation.Notification
}

// NotifyActivity is the activity type of Notify.
const NotifyActivity = "Notify"

// recordPatience limits the wait of a notification for the records, which say who has received it before. After that
// time it is sent without them: a notification that arrives twice is better than one that is lost with the database.
const recordPatience = 10 * time.Minute

// Notify sends a notification to every target that has not received it yet. If a target does not accept the
// notification, Notify returns an error. A retry sends the notification only to the remaining targets.
//
// Two places know who has received it. The heartbeat of the activity reaches its retries although the records are
// unavailable, and although another target fails for an hour. The records reach other chains with the same
// notification, and an activity that has begun anew. So a target receives the notification twice only if this worker
// dies within the seconds before the next heartbeat, while the records are unavailable.
func (n *Notifications) Notify(ctx context.Context, input NotifyInput) error {
	info := activity.GetInfo(ctx)
	d := delivery{
		remember: func(sent []string) { activity.RecordHeartbeat(ctx, sent) },
		late:     info.StartedTime.Sub(info.ScheduledTime) >= recordPatience,
	}
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &d.sent); err != nil {
			activity.GetLogger(ctx).Warn("it is not known who was notified by an earlier attempt", "error", err)
		}
	}
	return n.notify(ctx, input, info, d)
}

// delivery holds the results of earlier attempts.
type delivery struct {
	// sent holds the IDs of the targets that have received the notification from this activity. The function remember
	// keeps them for the next attempt.
	sent     []string
	remember func(sent []string)
	// late reports that the records were unavailable for too long to wait for them.
	late bool
}

// notify sends a notification.
func (n *Notifications) notify(ctx context.Context, input NotifyInput, info activity.Info, d delivery) error {
	recorded, err := n.Deliveries.Delivered(ctx, input.Key)
	if err != nil && !d.late {
		return n.translate(err)
	}
	if input.Reminder {
		known, err := n.Deliveries.Acknowledged(ctx, input.ChainID)
		if known || err != nil && !d.late {
			return n.translate(err)
		}
	}
	input.Then = strings.Join(slices.DeleteFunc([]string{input.Then, n.page(input.Notification), n.link(info)},
		func(text string) bool { return text == "" }), "\n")
	errs := make([]error, len(n.Targets))
	var sending sync.WaitGroup
	var remembering sync.Mutex
	received := slices.Concat(recorded, d.sent)
	for i, target := range n.Targets {
		if slices.Contains(received, target.ID()) {
			continue
		}
		sending.Go(func() {
			if errs[i] = target.Send(ctx, input.Notification); errs[i] != nil {
				return
			}
			remembering.Lock()
			defer remembering.Unlock()
			d.sent = append(d.sent, target.ID())
			d.remember(slices.Clone(d.sent))
		})
	}
	sending.Wait()
	if err := n.record(ctx, input.Key, recorded, d); err != nil && !slices.ContainsFunc(errs, isFailure) {
		return n.translate(err)
	}
	return failures(errs)
}

func isFailure(err error) bool { return err != nil }

// record records the deliveries that the records do not have. It does so even if ctx has ended, because other chains
// must not send the notification again. Late, only a permanent error counts.
func (n *Notifications) record(ctx context.Context, key string, recorded []string, d delivery) error {
	for _, id := range d.sent {
		if slices.Contains(recorded, id) {
			continue
		}
		err := n.Deliveries.RecordDelivery(context.WithoutCancel(ctx), key, id, time.Now())
		if err != nil && (!d.late || n.IsPermanent != nil && n.IsPermanent(err)) {
			return err
		}
	}
	return nil
}

// failures returns an error that states in one line how many targets failed, and why. If no target failed, failures
// returns nil.
func failures(errs []error) error {
	failed := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(failed) == 0 {
		return nil
	}
	texts := make([]string, len(failed))
	for i, err := range failed {
		texts[i] = err.Error()
	}
	return fmt.Errorf("%d of %d places in CLAUDEOPS_NOTIFY_URLS were not notified: %s", len(failed), len(errs),
		strings.Join(texts, "; "))
}

// page returns a line with the address of the page about a notification; "" if PagesURL is empty. The page needs a
// login, and opening it changes nothing.
func (n *Notifications) page(about escalation.Notification) string {
	if n.PagesURL == "" {
		return ""
	}
	page := "/chains/" + url.PathEscape(about.ChainID)
	switch about.Kind {
	case escalation.NotifySnoozeEnded:
		page = "/incidents/" + url.PathEscape(about.IncidentID)
	case escalation.NotifyNeedsHuman, escalation.NotifyWorse:
		page += "#gate"
	case escalation.NotifyCycleMissed: // the notification is about a cycle, which has no page
		page = "/schedules"
	case escalation.NotifyFailed, escalation.NotifyResolved, escalation.NotifyApproved, escalation.NotifyBlocked,
		escalation.NotifyBudgetSpent, escalation.NotifyLimited:
	}
	return "Page: " + strings.TrimSuffix(n.PagesURL, "/") + page
}

// link returns a line with the address of the workflow in the Web UI; "" if UIURL is empty.
func (n *Notifications) link(info activity.Info) string {
	if n.UIURL == "" {
		return ""
	}
	return fmt.Sprintf("Web UI: %s/namespaces/%s/workflows/%s/%s", strings.TrimSuffix(n.UIURL, "/"),
		url.PathEscape(info.Namespace), url.PathEscape(info.WorkflowExecution.ID),
		url.PathEscape(info.WorkflowExecution.RunID))
}

// translate makes a permanent error non-retryable. Without translate, Temporal would retry a delivery that can never be
// recorded.
func (n *Notifications) translate(err error) error {
	if err != nil && n.IsPermanent != nil && n.IsPermanent(err) {
		return permanent(ErrorTypeRecords, err)
	}
	return err
}
