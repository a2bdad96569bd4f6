package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Now returns the database's time. Hosts with different clocks agree on it. A database in a file of this host has no
// clock of its own: then Now returns host, the time of this host.
func (s *Store) Now(ctx context.Context, host time.Time) (time.Time, error) {
	if s.dialect.now == "" {
		return host, nil
	}
	var at int64
	if err := s.db.QueryRowContext(ctx, s.dialect.now).Scan(&at); err != nil {
		return time.Time{}, fmt.Errorf("ask the database for its time: %w", err)
	}
	return time.UnixMilli(at).UTC(), nil
}

const (
	// maxClockGap is the longest time between two calls of TrustClock that needs no explanation. It is longer than most
	// restarts.
	maxClockGap = 36 * time.Hour
	// clockPatience is how long a clock must go on after it has jumped ahead, before it is trusted. A host that starts
	// with a wrong clock gets the right time from the network long before.
	clockPatience = 24 * time.Hour
	// clockOblivion is the time after which a jump ahead is a further jump, and not a clock that has gone on.
	clockOblivion = 31 * 24 * time.Hour
	// maxFirstGap is the longest time between the latest session and the first call of TrustClock.
	maxFirstGap = 180 * 24 * time.Hour
)

// clock is the row of the table clock.
type clock struct{ trusted, jumped time.Time }

func clockFields(c *clock) []field {
	return []field{{"trusted_at", millis{&c.trusted}}, {"jumped_at", millis{&c.jumped}}}
}

var clockQuery = "SELECT " + columns(clockFields(new(clock))) + " FROM clock"

// TrustClock reports whether now can be the time. It cannot if it is more than a day and a half later than the last
// time that was trusted, which TrustClock returns. Then either no worker has run in between, or a clock has jumped
// ahead. Only a clock that goes on like this for a day is trusted again. At the first call, the latest session shows
// whether the time can be right.
func (s *Store) TrustClock(ctx context.Context, now time.Time) (trusted bool, last time.Time, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		rows, err := collect(ctx, tx, clockFields, clockQuery)
		if err != nil {
			return err
		}
		known := clock{trusted: now}
		if len(rows) > 0 {
			known = rows[0]
		} else if latest, err := latestSession(ctx, tx); err != nil {
			return err
		} else if !latest.IsZero() && now.Sub(latest) > maxFirstGap {
			known.trusted = latest
		}
		last = known.trusted
		held := now.Sub(known.jumped)
		switch {
		case now.Sub(known.trusted) <= maxClockGap, !known.jumped.IsZero() && held >= clockPatience &&
			held <= clockOblivion:
			trusted, known = true, clock{trusted: now}
		case known.jumped.IsZero() || held < 0 || held > clockOblivion:
			known.jumped = now
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM clock"); err != nil {
			return err
		}
		query, args := insertInto("clock", clockFields(&known))
		_, err = tx.ExecContext(ctx, query, args...)
		return err
	})
	if err != nil {
		return false, time.Time{}, fmt.Errorf("compare the clock with the last one: %w", err)
	}
	return trusted, last, nil
}

// latestSession returns the time of the latest session; zero if there is none.
func latestSession(ctx context.Context, q querier) (at time.Time, err error) {
	err = q.QueryRowContext(ctx, "SELECT MAX(started_at) FROM sessions").Scan(millis{&at})
	return at, err
}
