package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Position is a place in the records: the numbers of the latest rows that a reader knows. Rows get their numbers inside
// of write transactions, which never overlap (see Store.write). So no row with a lower number appears later, in
// PostgreSQL neither.
type Position struct {
	Events, Calls, Sessions int64
}

// News lists what was recorded after a position. Each list is in the order of recording.
type News struct {
	Events []escalation.Event
	Calls  []escalation.CallDecision
	// Opened holds the new sessions. Some of them may have ended already.
	Opened []escalation.Session
	// Running holds all open sessions, also those that are not new.
	Running []escalation.Session
	// Incidents holds all open incidents.
	Incidents []IncidentMark
	// Next is the position after this news.
	Next Position
	// More reports whether there is more news after Next.
	More bool
}

// IncidentMark is an open incident, with a text that changes with the incident and with the work of chains on it.
type IncidentMark struct {
	ID   string
	Mark string
}

// numbered is a record with its row number.
type numbered[T any] struct {
	number int64
	record T
}

// numberedFields lists the columns of a record and its row number. The argument fields lists those of the record.
func numberedFields[T any](fields func(*T) []field) func(*numbered[T]) []field {
	return func(n *numbered[T]) []field { return append([]field{{"id", &n.number}}, fields(&n.record)...) }
}

var (
	newEventsQuery   = newestQuery(eventFields(new(escalation.Event)), "events")
	newCallsQuery    = newestQuery(callFields(new(escalation.CallDecision)), "calls")
	newSessionsQuery = selectSessions + " WHERE id > $1 ORDER BY id LIMIT $2"
	marksQuery       = `
SELECT id, severity, last_seen_at, returned, COALESCE(acknowledged, ''),
    (SELECT COUNT(*) FROM incident_chains WHERE incident_id = incidents.id),
    (SELECT COALESCE(MAX(at), 0) FROM incident_chains WHERE incident_id = incidents.id)
FROM incidents WHERE resolved_at IS NULL ORDER BY id`
)

func newestQuery(fields []field, table string) string {
	return "SELECT id, " + columns(fields) + " FROM " + table + " WHERE id > $1 ORDER BY id LIMIT $2"
}

// LatestPosition returns the position after everything that is recorded.
func (s *Store) LatestPosition(ctx context.Context) (position Position, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		for table, number := range map[string]*int64{
			"events": &position.Events, "calls": &position.Calls, "sessions": &position.Sessions,
		} {
			query := "SELECT COALESCE(MAX(id), 0) FROM " + table
			if err := tx.QueryRowContext(ctx, query).Scan(number); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return position, fmt.Errorf("read the latest numbers of records: %w", err)
	}
	return position, nil
}

// News returns what was recorded after a position. It returns at most limit rows of each kind.
func (s *Store) News(ctx context.Context, after Position, limit int) (news News, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		news, err = readNews(ctx, tx, after, limit)
		return err
	})
	if err != nil {
		return News{}, fmt.Errorf("read what is new: %w", err)
	}
	return news, nil
}

func readNews(ctx context.Context, tx *sql.Tx, after Position, limit int) (News, error) {
	news := News{Next: after}
	events, err := collect(ctx, tx, numberedFields(eventFields), newEventsQuery, after.Events, limit)
	if err != nil {
		return news, err
	}
	for _, event := range events {
		news.Events, news.Next.Events = append(news.Events, event.record), event.number
	}
	calls, err := collect(ctx, tx, numberedFields(callFields), newCallsQuery, after.Calls, limit)
	if err != nil {
		return news, err
	}
	for _, call := range calls {
		news.Calls, news.Next.Calls = append(news.Calls, call.record), call.number
	}
	if news.Opened, err = collect(ctx, tx, sessionFields, newSessionsQuery, after.Sessions, limit); err != nil {
		return news, err
	}
	if len(news.Opened) > 0 {
		news.Next.Sessions = news.Opened[len(news.Opened)-1].ID
	}
	news.More = max(len(events), len(calls), len(news.Opened)) == limit
	if news.Running, err = collect(ctx, tx, sessionFields, runningQuery,
		string(escalation.SessionRunning)); err != nil {
		return news, err
	}
	news.Incidents, err = incidentMarks(ctx, tx)
	return news, err
}

func incidentMarks(ctx context.Context, tx *sql.Tx) ([]IncidentMark, error) {
	rows, err := tx.QueryContext(ctx, marksQuery)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has reported any error already
	var marks []IncidentMark
	for rows.Next() {
		var row, returned, chains, workedAt int64
		var severity escalation.Severity
		var acknowledged string
		var seen time.Time
		if err := rows.Scan(&row, &severity, millis{&seen}, &returned, &acknowledged, &chains, &workedAt); err != nil {
			return nil, fmt.Errorf("read a row: %w", err)
		}
		marks = append(marks, IncidentMark{
			ID:   fmt.Sprintf("%s%d", incidentPrefix, row),
			Mark: fmt.Sprint(severity, seen.UnixMilli(), returned, chains, workedAt, acknowledged),
		})
	}
	return marks, rows.Err()
}
