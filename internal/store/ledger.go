package store

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

var ledgerQuery = "SELECT " + columns(ledgerFields(new(ledgerRow))) + " FROM ledger WHERE at > $1 ORDER BY at, id"

// ledger returns the restarts and redeployments after the time since, oldest first.
//
// Charge adds an entry with the time of the call. CloseSession adds entries for actions that only a verdict names, with
// the end of the session as their time. The ledger contains each action of a session once, although every report counts
// from the session's beginning. For example, a first report names two restarts of a service, and a second report names
// three. The second report then adds one restart. If two restarts were charged before, the first report adds none. If a
// session has neither a verdict nor charges, CloseSession adds one presumed restart of each service that the session
// has locked.
func ledger(ctx context.Context, q querier, since time.Time) ([]escalation.LedgerEntry, error) {
	rows, err := collect(ctx, q, ledgerFields, ledgerQuery, since.UnixMilli())
	entries := make([]escalation.LedgerEntry, len(rows))
	for i := range rows {
		entries[i] = rows[i].LedgerEntry
	}
	return entries, err
}
