package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// ledgerRow is an entry with its place among the same actions of its session.
type ledgerRow struct {
	escalation.LedgerEntry
	position int
}

// Ledger returns the restarts and redeployments after since, of the services named or of all,
// oldest first.
//
// An entry comes from the verdict of a session that was closed, and has the time of that. A session
// that was reported twice has each action once: a report counts what a session has done from
// its beginning, so of two reports that name two restarts of a service and three, the second
// adds one.
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

// recordActions enters what verdict says that session did, but for what was entered before.
func recordActions(ctx context.Context, tx *sql.Tx, session escalation.Session, verdict *escalation.Verdict, at time.Time) error {
	if verdict == nil {
		return nil
	}
	type target struct {
		service string
		kind    escalation.ActionKind
	}
	seen := map[target]int{}
	for _, action := range verdict.Actions {
		if !action.Kind.HasCooldown() {
			continue
		}
		same := target{action.Service, action.Kind}
		seen[same]++
		row := ledgerRow{position: seen[same], LedgerEntry: escalation.LedgerEntry{
			Service: action.Service, Kind: action.Kind, At: at,
			ChainID: session.ChainID, SessionID: session.SessionID, Succeeded: action.Succeeded,
		}}
		query, args := insertInto("ledger", ledgerFields(&row))
		if _, err := tx.ExecContext(ctx, query+" ON CONFLICT (session_id, service, kind, position) DO NOTHING", args...); err != nil {
			return fmt.Errorf("enter the %s of %s into the ledger: %w", action.Kind, action.Service, err)
		}
	}
	return nil
}
