package store

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Ledger returns the restarts and redeployments after since, of the services named or of all,
// oldest first.
//
// An entry comes from Charge, with the time of the call, or from the verdict of a session that was
// closed, with the time of that. Each action of a session is there once: a report counts what a session
// has done from its beginning, so of two reports that name two restarts of a service and three, the
// second adds one, and the first none if two were charged.
func (s *Store) Ledger(ctx context.Context, since time.Time, services ...string) ([]escalation.LedgerEntry, error) {
	entries, err := ledger(ctx, s.db, since, services)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	return entries, nil
}

var (
	selectLedger = "SELECT " + columns(ledgerFields(new(ledgerRow))) + " FROM ledger WHERE at > $1"
	ledgerOrder  = " ORDER BY at, id"
)

// ledgerQuery reads the entries of that many services, or of all for 0.
func ledgerQuery(services int) string {
	if services == 0 {
		return selectLedger + ledgerOrder
	}
	return selectLedger + " AND service IN (" + placeholders(2, services) + ")" + ledgerOrder
}

func ledger(ctx context.Context, q querier, since time.Time, services []string) ([]escalation.LedgerEntry, error) {
	args := []any{since.UnixMilli()}
	for _, service := range services {
		args = append(args, service)
	}
	rows, err := collect(ctx, q, ledgerFields, ledgerQuery(len(services)), args...)
	entries := make([]escalation.LedgerEntry, len(rows))
	for i := range rows {
		entries[i] = rows[i].LedgerEntry
	}
	return entries, err
}
