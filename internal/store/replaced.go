package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// ReplacedReport is what a session was once recorded to have come to, before another report
// took over.
type ReplacedReport struct {
	SessionID string            `json:"session_id"`
	EndedAt   time.Time         `json:"ended_at"`
	Report    escalation.Report `json:"report"`
}

// ReplacedReports returns the reports of a session that later ones replaced, oldest first. A
// session that was closed once has none. One exists when, for instance, a chain
// was reset and a tier ran again under the same id: its cost was paid all the same.
func (s *Store) ReplacedReports(ctx context.Context, sessionID string) ([]ReplacedReport, error) {
	reports, err := replacedReports(ctx, s.db, sessionID)
	if err != nil {
		return nil, fmt.Errorf("read the replaced reports of session %q: %w", sessionID, err)
	}
	return reports, nil
}

var selectReplaced = "SELECT " + columns(replacedFields(new(ReplacedReport))) + " FROM replaced_reports"

func replacedReports(ctx context.Context, q querier, sessionID string) ([]ReplacedReport, error) {
	return collect(ctx, q, replacedFields, selectReplaced+" WHERE session_id = $1 ORDER BY id", sessionID)
}

func keepReplaced(ctx context.Context, tx *sql.Tx, report ReplacedReport) error {
	query, args := insertInto("replaced_reports", replacedFields(&report))
	if _, err := tx.ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("keep the report that is replaced: %w", err)
	}
	return nil
}
