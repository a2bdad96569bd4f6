package store

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

var ledgerQuery = "SELECT " + columns(ledgerFields(new(ledgerRow))) + " FROM ledger WHERE at > $1 ORDER BY at, id"

// ledger returns the restarts and redeployments whose recorded time is after since, oldest first.
//
// Charge adds an entry with the time of the call. CloseSession adds an entry for each action that only a verdict
// names, with the time of the session's end. The ledger contains each action of a session once, although every report
// names all actions since the session's beginning. For example, a first report names two restarts of a service, and a
// second report names three. The second report then adds one restart. If two restarts were charged before the first
// report, that report adds none. If a session may have acted but has neither a usable verdict nor charges,
// CloseSession presumes one restart of each service that the session has locked.
func ledger(ctx context.Context, q querier, since time.Time) ([]escalation.LedgerEntry, error) {
	rows, err := collect(ctx, q, ledgerFields, ledgerQuery, since.UnixMilli())
	entries := make([]escalation.LedgerEntry, len(rows))
	for i := range rows {
		entries[i] = rows[i].LedgerEntry
	}
	return entries, err
}
