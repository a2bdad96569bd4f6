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

func (awayDeliveries) Acknowledged(context.Context, string) (bool, error) {
	return false, errors.New("the database is away")
}

// countingTarget counts the notifications that it receives.
type countingTarget struct{ got int }

var _ NotifyTarget = (*countingTarget)(nil)

func (*countingTarget) ID() string { return "ntfy-1" }

func (c *countingTarget) Send(context.Context, escalation.Notification) error {
	c.got++
	return nil
}

// TestNotifyWithoutRecords checks that a notification that has waited for the records long enough is sent without them,
// once.
func TestNotifyWithoutRecords(t *testing.T) {
	t.Parallel()
	target := &countingTarget{}
	n := &Notifications{Targets: []NotifyTarget{target}, Deliveries: awayDeliveries{}}
	remember := func(sent []string) { require.Equal(t, []string{"ntfy-1"}, sent) }
	require.ErrorContains(t, n.notify(t.Context(), NotifyInput{}, activity.Info{}, delivery{remember: remember}), "the database is away")
	require.Zero(t, target.got, "the records may be back soon")
	require.NoError(t, n.notify(t.Context(), NotifyInput{}, activity.Info{}, delivery{remember: remember, late: true}))
	require.Equal(t, 1, target.got)
}

// readOnlyDeliveries can be read and not written.
type readOnlyDeliveries struct{ awayDeliveries }

func (readOnlyDeliveries) Delivered(context.Context, string) ([]string, error) { return nil, nil }

// deadTarget accepts nothing before an attempt.
type deadTarget struct{ tries, accepts int }

func (*deadTarget) ID() string { return "apprise-2" }

func (d *deadTarget) Send(context.Context, escalation.Notification) error {
	d.tries++
	if d.tries < d.accepts {
		return errors.New("apprise-2: 502 Bad Gateway")
	}
	return nil
}

// TestNotifyForAnHour plays the attempts of an hour, each two minutes after the one before. Nobody receives the
// notification twice, whether the records can be read or not, and whether another service is dead or not.
func TestNotifyForAnHour(t *testing.T) {
	t.Parallel()
	const never = 1000
	for name, c := range map[string]struct {
		records DeliveryLog
		accepts int
	}{
		"read-only":                           {readOnlyDeliveries{}, 1},
		"read-only, a service is away":        {readOnlyDeliveries{}, 12},
		"read-only, a service is dead":        {readOnlyDeliveries{}, never},
		"records are away":                    {awayDeliveries{}, 1},
		"records and a service are away":      {awayDeliveries{}, 12},
		"records are away, a service is dead": {awayDeliveries{}, never},
	} {
		target, other := &countingTarget{}, &deadTarget{accepts: c.accepts}
		n := &Notifications{Targets: []NotifyTarget{target, other}, Deliveries: c.records}
		d := delivery{}
		d.remember = func(sent []string) { d.sent = sent }
		var err error
		for passed := time.Duration(0); passed < time.Hour; passed += 2 * time.Minute {
			attempt := d
			attempt.late = passed >= recordPatience
			if err = n.notify(t.Context(), NotifyInput{}, activity.Info{}, attempt); err == nil {
				break
			}
		}
		require.Equal(t, 1, target.got, name)
		if c.accepts == never {
			require.ErrorContains(t, err, "1 of 2 places in CLAUDEOPS_NOTIFY_URLS were not notified: apprise-2", name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.accepts, other.tries, name)
	}
}
