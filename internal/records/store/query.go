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
	records := []T{}
	err := each(ctx, q, func(row *sql.Rows) (bool, error) {
		record, err := scan(row, fields)
		records = append(records, record)
		return true, err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return records, nil
}

// each calls visit at each row of query, until it returns false or an error.
func each(
	ctx context.Context, q querier, visit func(row *sql.Rows) (more bool, err error), query string, args ...any,
) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err has reported any error already
	for rows.Next() {
		if more, err := visit(rows); err != nil || !more {
			return err
		}
	}
	return rows.Err()
}

// scan returns the record of a row, which must have the columns of fields.
func scan[T any](row *sql.Rows, fields func(*T) []field) (record T, err error) {
	if err := row.Scan(values(fields(&record))...); err != nil {
		return record, fmt.Errorf("read a row: %w", err)
	}
	return record, nil
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
