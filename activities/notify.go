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

// NotifyTarget is one place where people are notified.
type NotifyTarget interface {
	// ID tells the target from others, today and after a restart, and holds no secret.
	ID() string
	// Send returns once the target has taken the notification. Its error names the target and
	// holds no secret: it becomes a part of the history.
	Send(ctx context.Context, notification escalation.Notification) error
}

// DeliveryLog remembers who was notified of what.
type DeliveryLog interface {
	// Delivered returns the IDs of the targets that have got the notification with that key.
	Delivered(ctx context.Context, key string) ([]string, error)
	// RecordDelivery records that target has got it. It is idempotent.
	RecordDelivery(ctx context.Context, key, target string, at time.Time) error
}

// Notifications notifies people.
type Notifications struct {
	Targets    []NotifyTarget
	Deliveries DeliveryLog
	// IsPermanent reports whether an error of Deliveries will not go away by itself.
	IsPermanent func(error) bool
	// UIURL is the address of Temporal's Web UI for a link; empty for none.
	UIURL string
}

// NotifyInput is what people are to be told.
type NotifyInput struct {
	escalation.Notification
}

// NotifyActivity is the name of Notify for Temporal.
const NotifyActivity = "Notify"

// Notify sends a notification to every target that has not got it, and fails if not all of
// them took it: a repeated attempt goes to the others only. A target that took it while this
// worker died gets it twice, which is better than not at all.
func (n *Notifications) Notify(ctx context.Context, input NotifyInput) error {
	delivered, err := n.Deliveries.Delivered(ctx, input.Key)
	if err != nil {
		return n.translate(err)
	}
	input.Text += n.link(activity.GetInfo(ctx))
	errs := make([]error, len(n.Targets))
	var sending sync.WaitGroup
	for i, target := range n.Targets {
		if !slices.Contains(delivered, target.ID()) {
			sending.Go(func() { errs[i] = n.deliver(ctx, target, input.Notification) })
		}
	}
	sending.Wait()
	return n.translate(failures(errs))
}

// deliver notifies one target and remembers it.
func (n *Notifications) deliver(ctx context.Context, target NotifyTarget, notification escalation.Notification) error {
	if err := target.Send(ctx, notification); err != nil {
		return err
	}
	// Also when time is up: what was sent must not be sent again.
	return n.Deliveries.RecordDelivery(context.WithoutCancel(ctx), notification.Key, target.ID(), time.Now())
}

// failures says in one line how many targets failed, and why; nil if none did.
func failures(errs []error) error {
	failed := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(failed) == 0 {
		return nil
	}
	texts := make([]string, len(failed))
	for i, err := range failed {
		texts[i] = err.Error()
	}
	return &undelivered{fmt.Sprintf("%d of %d places were not notified: %s", len(failed), len(errs), strings.Join(texts, "; ")), failed}
}

// undelivered is one line for several errors.
type undelivered struct {
	text   string
	causes []error
}

func (u *undelivered) Error() string   { return u.text }
func (u *undelivered) Unwrap() []error { return u.causes }

// link is a line with the address of the workflow in the Web UI.
func (n *Notifications) link(info activity.Info) string {
	if n.UIURL == "" {
		return ""
	}
	return fmt.Sprintf("\nWeb UI: %s/namespaces/%s/workflows/%s/%s", strings.TrimSuffix(n.UIURL, "/"),
		url.PathEscape(info.Namespace), url.PathEscape(info.WorkflowExecution.ID), url.PathEscape(info.WorkflowExecution.RunID))
}

// translate decides whether Temporal should try again. A delivery that can never be recorded
// would be repeated with every attempt.
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
