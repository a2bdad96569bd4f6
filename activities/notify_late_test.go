package activities

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/claudeops/claudeops/internal/escalation"
)

// awayDeliveries is unavailable.
type awayDeliveries struct{}

var _ DeliveryLog = awayDeliveries{}

func (awayDeliveries) Delivered(context.Context, string) ([]string, error) {
	return nil, errors.New("the database is away")
}

func (awayDeliveries) RecordDelivery(context.Context, string, string, time.Time) error {
	return errors.New("the database is away")
}

// countingTarget counts the notifications that it receives.
type countingTarget struct{ got int }

var _ NotifyTarget = (*countingTarget)(nil)

func (*countingTarget) ID() string { return "ntfy-1" }

func (c *countingTarget) Send(context.Context, escalation.Notification) error {
	c.got++
	return nil
}

// TestNotifyWithoutRecords checks that a notification that has waited for the records long enough is sent without them, once.
func TestNotifyWithoutRecords(t *testing.T) {
	t.Parallel()
	target := &countingTarget{}
	n := &Notifications{Targets: []NotifyTarget{target}, Deliveries: awayDeliveries{}}
	require.ErrorContains(t, n.notify(t.Context(), NotifyInput{}, activity.Info{}, false), "the database is away")
	require.Zero(t, target.got, "the records may be back soon")
	require.NoError(t, n.notify(t.Context(), NotifyInput{}, activity.Info{}, true))
	require.Equal(t, 1, target.got)
}
