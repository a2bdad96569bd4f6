package store

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

var ledgerQuery = "SELECT " + columns(ledgerFields(new(ledgerRow))) + " FROM ledger WHERE at > $1 ORDER BY at, id"

// ledger returns the restarts and redeployments after since, oldest first.
//
// Charge adds an entry with the time of the call. CloseSession adds the ones that only a verdict names, with the end of
// the session as their time. Each action of a session is there once, although a report counts from the session's
// beginning. For example: a first report names two restarts of a service and a second one names three. The second adds
// one restart. The first adds none if two were charged before. For a session without verdict and charges, CloseSession adds
// one presumed restart of each service that the session has locked.
func ledger(ctx context.Context, q querier, since time.Time) ([]escalation.LedgerEntry, error) {
	rows, err := collect(ctx, q, ledgerFields, ledgerQuery, since.UnixMilli())
	entries := make([]escalation.LedgerEntry, len(rows))
	for i := range rows {
		entries[i] = rows[i].LedgerEntry
	}
	return entries, err
}
