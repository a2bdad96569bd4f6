package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// sessionActions holds the ledger entries of one session during a transaction.
type sessionActions struct {
	tx      *sql.Tx
	session escalation.Session
	rows    []ledgerRow
}

// ledgerRow is a ledger entry with its position among the session's entries for the same target. The positions can
// have gaps, because charges can be returned.
type ledgerRow struct {
	escalation.LedgerEntry
	position int
}

// target is the service and the kind of an action. A charge and a report of the same action have the same target.
type target struct {
	service string
	kind    escalation.ActionKind
}

// targetOf returns the target of an action. A target has the ServiceKey of the service, because a verdict and a call
// can spell the name differently.
func targetOf(service string, kind escalation.ActionKind) target {
	return target{escalation.ServiceKey(service), kind}
}

func (r *ledgerRow) target() target { return targetOf(r.Service, r.Kind) }

var (
	sessionLedgerQuery = "SELECT " + columns(ledgerFields(new(ledgerRow))) +
		" FROM ledger WHERE session_id = $1 ORDER BY id"

	succeededQuery = "UPDATE ledger SET succeeded = $1 WHERE session_id = $2 AND service = $3 AND kind = $4 AND " +
		"position = $5"
)

func actionsOf(ctx context.Context, tx *sql.Tx, session escalation.Session) (*sessionActions, error) {
	rows, err := collect(ctx, tx, ledgerFields, sessionLedgerQuery, session.SessionID)
	if err != nil {
		return nil, fmt.Errorf("read what the session did: %w", err)
	}
	return &sessionActions{tx: tx, session: session, rows: rows}, nil
}

// charged reports whether call has entries in the ledger.
func (a *sessionActions) charged(call string) bool {
	for i := range a.rows {
		if a.rows[i].Call == call {
			return true
		}
	}
	return false
}

// same returns the session's entries for one target, oldest first.
func (a *sessionActions) same(as target) []*ledgerRow {
	var found []*ledgerRow
	for i := range a.rows {
		if a.rows[i].target() == as {
			found = append(found, &a.rows[i])
		}
	}
	return found
}

// enter adds an entry to the ledger for the session.
func (a *sessionActions) enter(ctx context.Context, entry escalation.LedgerEntry) error {
	entry.ChainID, entry.SessionID = a.session.ChainID, a.session.SessionID
	row := ledgerRow{LedgerEntry: entry, position: 1}
	for _, other := range a.same(row.target()) {
		row.position = max(row.position, other.position+1)
	}
	query, args := insertInto("ledger", ledgerFields(&row))
	if _, err := a.tx.ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("enter the %s of %s into the ledger: %w", row.Kind, row.Service, err)
	}
	a.rows = append(a.rows, row)
	return nil
}

// succeed records whether a charged action succeeded, which was unknown at the time of the charge. Entries from
// verdicts stay unchanged.
func (a *sessionActions) succeed(ctx context.Context, row *ledgerRow, succeeded bool) error {
	if row.Call == "" || row.Succeeded == succeeded {
		return nil
	}
	row.Succeeded = succeeded
	if _, err := a.tx.ExecContext(ctx, succeededQuery, succeeded, row.SessionID, row.Service, row.Kind,
		row.position); err != nil {
		return fmt.Errorf("record whether the %s of %s succeeded: %w", row.Kind, row.Service, err)
	}
	return nil
}

// claimedQuery selects the services that one session has locked by name. The column since of a lock is the start of
// the chain's latest session that took the lock. So if a later session has taken a lock again, the query for the
// earlier session omits that lock.
var claimedQuery = selectLocks + " WHERE chain_id = $1 AND since = $2 AND service_key <> '' ORDER BY service_key"

// presumeActions adds presumed restarts to the ledger: one restart for each service that the session has locked. If the
// ledger already has entries of the session, presumeActions adds nothing. Call it for a session that may have acted
// without a report (see escalation.Session.MayHaveActed). Without presumed restarts, a session that times out again and
// again could restart a service without limit.
func presumeActions(ctx context.Context, tx *sql.Tx, session escalation.Session, at time.Time) error {
	own, err := actionsOf(ctx, tx, session)
	if err != nil || len(own.rows) > 0 {
		return err
	}
	locks, err := collect(ctx, tx, lockFields, claimedQuery, session.ChainID, session.StartedAt.UnixMilli())
	if err != nil {
		return fmt.Errorf("read which services the session has locked: %w", err)
	}
	for _, lock := range locks {
		entry := escalation.LedgerEntry{Service: lock.Service, Kind: escalation.ActionRestart, At: at}
		if err := own.enter(ctx, entry); err != nil {
			return err
		}
	}
	return nil
}

// recordActions adds the actions in the session's verdict to the ledger. It omits actions that the ledger already
// has, either from the charge of a call or from an earlier report. It removes no entry, even if the verdict does not
// name the action. If the session already has entries for the same target, a new entry copies their spelling of the
// service's name.
func recordActions(ctx context.Context, tx *sql.Tx, session escalation.Session, at time.Time) error {
	own, err := actionsOf(ctx, tx, session)
	if err != nil {
		return err
	}
	seen := map[target]int{}
	for _, action := range session.Verdict.Actions {
		if !action.Kind.HasCooldown() {
			continue
		}
		same := targetOf(action.Service, action.Kind)
		entered := own.same(same)
		if len(entered) > 0 {
			action.Service = entered[0].Service
		}
		if seen[same] < len(entered) {
			err = own.succeed(ctx, entered[seen[same]], action.Succeeded)
		} else {
			err = own.enter(ctx, escalation.LedgerEntry{
				Service: action.Service, Kind: action.Kind, At: at, Succeeded: action.Succeeded,
			})
		}
		if err != nil {
			return err
		}
		seen[same]++
	}
	return nil
}
