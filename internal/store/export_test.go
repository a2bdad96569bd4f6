package store

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Ledger returns the entries of the ledger after since, oldest first.
func (s *Store) Ledger(ctx context.Context, since time.Time) ([]escalation.LedgerEntry, error) {
	return ledger(ctx, s.db, since)
}

// ReplacedReports returns the replaced reports of a session, oldest first.
func (s *Store) ReplacedReports(ctx context.Context, sessionID string) ([]escalation.Report, error) {
	replaced, err := replacedReports(ctx, s.db, sessionID)
	var reports []escalation.Report
	for _, r := range replaced {
		reports = append(reports, r.report)
	}
	return reports, err
}
