package store

import (
	"context"
	"fmt"
	"math"

	"github.com/claudeops/claudeops/internal/escalation"
)

// selectSessions selects whole session records. A WHERE clause can follow.
var selectSessions = "SELECT " + columns(sessionFields(new(escalation.Session))) + " FROM sessions"

// collect returns one record for each row of query. The query must select the columns of fields. If it selects no rows,
// the list is empty.
func collect[T any](ctx context.Context, q querier, fields func(*T) []field, query string, args ...any) ([]T, error) {
	return collectSome(ctx, q, fields, func(*T) bool { return true }, math.MaxInt, query, args...)
}

// collectSome is like collect, but returns only records for which the function keep returns true, and reads no more than limit of them.
func collectSome[T any](
	ctx context.Context, q querier, fields func(*T) []field, keep func(*T) bool, limit int, query string, args ...any,
) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has reported any error already
	records := []T{}
	for len(records) < limit && rows.Next() {
		var record T
		if err := rows.Scan(values(fields(&record))...); err != nil {
			return nil, fmt.Errorf("read a row: %w", err)
		}
		if keep(&record) {
			records = append(records, record)
		}
	}
	return records, rows.Err()
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
