package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// replacedReport is a report of a session that a later report has replaced.
type replacedReport struct {
	sessionID string
	// startedAt is the start of the session.
	startedAt time.Time
	endedAt   time.Time
	report    escalation.Report
}

var replacedQuery = "SELECT " + columns(replacedFields(new(replacedReport))) +
	" FROM replaced_reports WHERE session_id = $1 ORDER BY id"

// replacedReports returns the replaced reports of a session, oldest first.
func replacedReports(ctx context.Context, q querier, sessionID string) ([]replacedReport, error) {
	return collect(ctx, q, replacedFields, replacedQuery, sessionID)
}

func keepReplaced(ctx context.Context, tx *sql.Tx, report replacedReport) error {
	query, args := insertInto("replaced_reports", replacedFields(&report))
	if _, err := tx.ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("keep the report that is replaced: %w", err)
	}
	return nil
}
