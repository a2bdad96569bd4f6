package activities

import (
	"context"
	"errors"
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
}

// Notifications notifies people.
type Notifications struct {
	Targets    []NotifyTarget
	Deliveries DeliveryLog
	// IsPermanent reports whether an error of Deliveries is permanent, so that a retry would fail, too.
	IsPermanent func(error) bool
	// PagesURL is the address of the pages, and UIURL that of Temporal's Web UI. Notifications contain no link to what is empty.
	PagesURL, UIURL string
}

// NotifyInput is the notification to send.
type NotifyInput struct {
	escalation.Notification
}

// NotifyActivity is the activity type of Notify.
const NotifyActivity = "Notify"

// recordPatience is how long a notification waits for the records, which say who has received it. After that time it is sent
// without them: a notification that arrives twice is better than one that is lost with the database.
const recordPatience = 10 * time.Minute

// Notify sends a notification to every target that has not received it yet. If a target does not accept the
// notification, Notify returns an error. A retry sends the notification only to the remaining targets. If this worker
// dies just after a target has accepted the notification, that target receives the notification twice. That can also
// happen if the records are unavailable for longer than recordPatience.
func (n *Notifications) Notify(ctx context.Context, input NotifyInput) error {
	info := activity.GetInfo(ctx)
	return n.notify(ctx, input, info, info.StartedTime.Sub(info.ScheduledTime) >= recordPatience)
}

// notify sends a notification. If late is true, it does so although the records are unavailable.
func (n *Notifications) notify(ctx context.Context, input NotifyInput, info activity.Info, late bool) error {
	delivered, err := n.Deliveries.Delivered(ctx, input.Key)
	if err != nil && !late {
		return n.translate(err)
	}
	input.Then = strings.Join(slices.DeleteFunc([]string{input.Then, n.page(input.Notification), n.link(info)},
		func(text string) bool { return text == "" }), "\n")
	errs := make([]error, len(n.Targets))
	var sending sync.WaitGroup
	for i, target := range n.Targets {
		if !slices.Contains(delivered, target.ID()) {
			sending.Go(func() { errs[i] = n.deliver(ctx, target, input.Notification, late) })
		}
	}
	sending.Wait()
	return n.translate(failures(errs))
}

// deliver sends the notification to one target and records the delivery.
func (n *Notifications) deliver(ctx context.Context, target NotifyTarget, notification escalation.Notification, late bool) error {
	if err := target.Send(ctx, notification); err != nil {
		return err
	}
	// Record the delivery even if ctx has ended, because the notification must not be sent again.
	err := n.Deliveries.RecordDelivery(context.WithoutCancel(ctx), notification.Key, target.ID(), time.Now())
	if late && (n.IsPermanent == nil || !n.IsPermanent(err)) {
		return nil // a retry would only send it again
	}
	return err
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
	return &undelivered{fmt.Sprintf("%d of %d places in CLAUDEOPS_NOTIFY_URLS were not notified: %s", len(failed), len(errs), strings.Join(texts, "; ")), failed}
}

// undelivered is an error that wraps several errors and describes them in one line.
type undelivered struct {
	text   string
	causes []error
}

func (u *undelivered) Error() string   { return u.text }
func (u *undelivered) Unwrap() []error { return u.causes }

// page returns a line with the address of the page about a notification; "" if PagesURL is empty. The page needs a login, and
// opening it changes nothing.
func (n *Notifications) page(about escalation.Notification) string {
	if n.PagesURL == "" {
		return ""
	}
	page := "/chains/" + url.PathEscape(about.ChainID)
	switch about.Kind {
	case escalation.NotifyNeedsHuman, escalation.NotifyWorse:
		page += "#gate"
	case escalation.NotifyCycleMissed: // the notification is about a cycle, which has no page
		page = "/schedules"
	case escalation.NotifyFailed, escalation.NotifyResolved, escalation.NotifyApproved, escalation.NotifyBlocked,
		escalation.NotifyBudgetSpent:
	}
	return "Page: " + strings.TrimSuffix(n.PagesURL, "/") + page
}

// link returns a line with the address of the workflow in the Web UI; "" if UIURL is empty.
func (n *Notifications) link(info activity.Info) string {
	if n.UIURL == "" {
		return ""
	}
	return fmt.Sprintf("Web UI: %s/namespaces/%s/workflows/%s/%s", strings.TrimSuffix(n.UIURL, "/"),
		url.PathEscape(info.Namespace), url.PathEscape(info.WorkflowExecution.ID), url.PathEscape(info.WorkflowExecution.RunID))
}

// translate makes a permanent error non-retryable. Without translate, Temporal would retry a delivery that can never be
// recorded.
func (n *Notifications) translate(err error) error {
	causes := []error{err}
	if unsent, ok := errors.AsType[*undelivered](err); ok {
		causes = unsent.causes
	}
	if err != nil && n.IsPermanent != nil && slices.ContainsFunc(causes, n.IsPermanent) {
		return permanent(ErrorTypeRecords, err)
	}
	return err
}
