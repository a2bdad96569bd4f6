package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"

	"github.com/claudeops/claudeops/internal/escalation"
)

// maxEventsRead limits the events of one chain that Events returns. Each signal that a chain refuses is an event.
const maxEventsRead = 5_000

var eventsQuery = "SELECT " + columns(eventFields(new(escalation.Event))) + " FROM events" + ofChain +
	" ORDER BY id DESC LIMIT " +
	strconv.Itoa(maxEventsRead)

// AppendEvents records events in the given order. If it fails, it records none of them. If an event with the same Key
// is already recorded, the recorded event stays unchanged. The error is ErrInvalid if an event has no Key, ChainID or
// At.
func (s *Store) AppendEvents(ctx context.Context, events []escalation.Event) (err error) {
	defer s.count(OpEvents, &err)
	events, err = canonical(s.hooks.events(events))
	if err == nil && len(events) > 0 {
		err = s.write(ctx, func(tx *sql.Tx) error { return appendEvents(ctx, tx, events) })
	}
	if err != nil {
		return fmt.Errorf("record events: %w", err)
	}
	return nil
}

// Events returns the events of a chain in the order in which they were recorded, the latest 5,000 at most. If there are
// none, or if the chain is unknown, the list is empty.
func (s *Store) Events(ctx context.Context, chainID string) ([]escalation.Event, error) {
	events, err := collect(ctx, s.db, eventFields, eventsQuery, chainID)
	if err != nil {
		return nil, fmt.Errorf("read the events of chain %q: %w", chainID, err)
	}
	slices.Reverse(events)
	return events, nil
}

func appendEvents(ctx context.Context, tx *sql.Tx, events []escalation.Event) error {
	for i := range events {
		if err := checkEvent(events[i]); err != nil {
			return fmt.Errorf("event %d of %d: %w", i+1, len(events), err)
		}
		query, args := insertInto("events", eventFields(&events[i]))
		if _, err := tx.ExecContext(ctx, query+" ON CONFLICT (event_key) DO NOTHING", args...); err != nil {
			return fmt.Errorf("event %q: %w", events[i].Key, err)
		}
	}
	return nil
}

func checkEvent(event escalation.Event) error {
	switch {
	case event.Key == "":
		return fmt.Errorf("%w: it has no key", ErrInvalid)
	case event.ChainID == "":
		return fmt.Errorf("%w: it has no chain id", ErrInvalid)
	case event.At.IsZero():
		return fmt.Errorf("%w: it has no time", ErrInvalid)
	default:
		return nil
	}
}
