package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// delivery is a row of the table notifications, without the row number.
type delivery struct {
	key, target string
	at          time.Time
}

func deliveryFields(d *delivery) []field {
	return []field{
		{"notification_key", &d.key}, {"target", &d.target}, {"sent_at", millis{&d.at}},
	}
}

var deliveredQuery = "SELECT " + columns(deliveryFields(new(delivery))) +
	" FROM notifications WHERE notification_key = $1 ORDER BY id"

// Delivered returns the targets that have received the notification with this key.
func (s *Store) Delivered(ctx context.Context, key string) ([]string, error) {
	deliveries, err := collect(ctx, s.db, deliveryFields, deliveredQuery, key)
	if err != nil {
		return nil, fmt.Errorf("read who was notified of %q: %w", key, err)
	}
	targets := make([]string, 0, len(deliveries))
	for _, d := range deliveries {
		targets = append(targets, d.target)
	}
	return targets, nil
}

// RecordDelivery records that target has received the notification with this key. If this
// delivery is already recorded, RecordDelivery changes nothing.
func (s *Store) RecordDelivery(ctx context.Context, key, target string, at time.Time) error {
	if key == "" || target == "" || at.IsZero() {
		return fmt.Errorf("record a notification: %w: it lacks its key, its target or its time", ErrInvalid)
	}
	at, err := s.at(ctx, at)
	if err != nil {
		return err
	}
	query, args := insertInto("notifications", deliveryFields(&delivery{key, target, at}))
	err = s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, query+" ON CONFLICT (notification_key, target) DO NOTHING", args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("record that %s was notified of %q: %w", target, key, err)
	}
	return nil
}
