package store

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

// CountRows counts the rows of tables.
func CountRows(t testing.TB, s *Store, tables ...string) map[string]int64 {
	t.Helper()
	counts := map[string]int64{}
	for _, table := range tables {
		rows, err := countRows(t.Context(), s.db, table)
		require.NoError(t, err)
		counts[table] = rows
	}
	return counts
}
