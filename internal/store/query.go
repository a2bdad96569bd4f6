package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/claudeops/claudeops/internal/escalation"
)

// selectSessions selects whole session records. A WHERE clause can follow.
var selectSessions = "SELECT " + columns(sessionFields(new(escalation.Session))) + " FROM sessions"

// collect returns one record for each row of query. The query must select the columns of fields. If it selects no rows,
// the list is empty.
func collect[T any](ctx context.Context, q querier, fields func(*T) []field, query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	records := []T{}
	err = each(rows, fields, func(record T) bool {
		records = append(records, record)
		return true
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

// each calls visit with the record of each row, until it returns false, and closes rows. The rows must have the columns of
// fields.
func each[T any](rows *sql.Rows, fields func(*T) []field, visit func(T) bool) error {
	defer func() { _ = rows.Close() }() // rows.Err has reported any error already
	for rows.Next() {
		var record T
		if err := rows.Scan(values(fields(&record))...); err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
		if !visit(record) {
			break
		}
	}
	return rows.Err()
}

// oneSession returns the only row of query. If there is no row, the error is ErrNotFound.
func oneSession(ctx context.Context, q querier, query string, args ...any) (escalation.Session, error) {
	found, err := collect(ctx, q, sessionFields, query, args...)
	switch {
	case err != nil:
		return escalation.Session{}, err
	case len(found) == 0:
		return escalation.Session{}, ErrNotFound
	default:
		return found[0], nil
	}
}

func bySessionID(ctx context.Context, q querier, sessionID string) (escalation.Session, error) {
	return oneSession(ctx, q, selectSessions+" WHERE session_id = $1", sessionID)
}
