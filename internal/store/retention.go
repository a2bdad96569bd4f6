package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// claimQuery gives a duty to a holder, unless it is another holder's for now.
const claimQuery = `
INSERT INTO duties (name, holder, until) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE duties.holder = excluded.holder OR duties.until <= $4`

// ClaimDuty gives the duty called name to holder until a time, and reports whether it did. It does not if the duty is
// another holder's until later than now.
func (s *Store) ClaimDuty(ctx context.Context, name, holder string, now, until time.Time) (claimed bool, err error) {
	var rows int64
	err = s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, claimQuery, name, holder, until.UnixMilli(), now.UnixMilli())
		if err == nil {
			rows, err = result.RowsAffected()
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("claim the duty %q: %w", name, err)
	}
	return rows > 0, nil
}

// oldQuery selects chains of the namespace $1 by ID. All their sessions and events must be from before $2, and all their sessions
// closed. Nothing must need their records: no incident, no lock, and no session of another chain that continued one of theirs.
// The first placeholders are the same in every use.
const oldQuery = `
SELECT old.chain_id FROM (
    SELECT chain_id FROM sessions WHERE namespace_id = $1 AND started_at < $2
    UNION SELECT chain_id FROM events WHERE namespace_id = $1 AND occurred_at < $2
) AS old
WHERE NOT EXISTS (
    SELECT 1 FROM sessions WHERE sessions.chain_id = old.chain_id AND sessions.namespace_id = $1
        AND (sessions.ended_at IS NULL OR sessions.ended_at >= $2 OR sessions.started_at >= $2)
) AND NOT EXISTS (
    SELECT 1 FROM events WHERE events.chain_id = old.chain_id AND events.namespace_id = $1 AND events.occurred_at >= $2
) AND NOT EXISTS (
    SELECT 1 FROM incident_chains WHERE incident_chains.chain_id = old.chain_id AND incident_chains.namespace_id = $1
) AND NOT EXISTS (
    SELECT 1 FROM service_locks WHERE service_locks.chain_id = old.chain_id AND service_locks.namespace_id = $1
) AND NOT EXISTS (
    SELECT 1 FROM sessions AS own JOIN sessions AS child ON child.parent_session_id = own.id
    WHERE own.chain_id = old.chain_id AND own.namespace_id = $1
        AND (child.chain_id <> own.chain_id OR child.namespace_id <> own.namespace_id)
)`

const (
	oldChainsQuery = oldQuery + " AND old.chain_id > $3 ORDER BY old.chain_id LIMIT 100"
	isOldQuery     = oldQuery + " AND old.chain_id = $3"
)

// OldChain is a chain whose records may be removed, unless the chain still runs.
type OldChain struct {
	ChainID string
	// SessionIDs are the IDs of its conversations.
	SessionIDs []string
}

// OldChains returns chains of the Store's namespace that recorded nothing since before, by ID: at most 100, after the ID after.
// It leaves out chains whose records are still needed, because a session is open, because they belong to an incident or hold a
// service, or because another chain continued one of their sessions.
func (s *Store) OldChains(ctx context.Context, before time.Time, after string) (chains []OldChain, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		chains, err = collect(ctx, tx, oldChainFields, oldChainsQuery, s.namespace.ID, before.UnixMilli(), after)
		for i := range chains {
			if err == nil {
				chains[i].SessionIDs, err = s.sessionIDs(ctx, tx, chains[i].ChainID)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find old chains: %w", err)
	}
	return chains, nil
}

func oldChainFields(c *OldChain) []field { return []field{{"chain_id", &c.ChainID}} }

const sessionIDsQuery = "SELECT session_id FROM sessions WHERE chain_id = $1 AND namespace_id = $2 ORDER BY id"

func (s *Store) sessionIDs(ctx context.Context, q querier, chainID string) ([]string, error) {
	return collect(ctx, q, func(id *string) []field { return []field{{"session_id", id}} }, sessionIDsQuery, chainID, s.namespace.ID)
}

// removals removes all records of a chain, what refers to others first.
var removals = []struct {
	query string
	// counts is set for the tables that Removed counts.
	counts func(*Removed) *int64
}{
	{"DELETE FROM ledger WHERE session_id IN (" + sessionIDsOf + ")", nil},
	{"DELETE FROM replaced_reports WHERE session_id IN (" + sessionIDsOf + ")", nil},
	{"DELETE FROM calls WHERE session_id IN (" + sessionIDsOf + ")", nil},
	{"DELETE FROM events WHERE chain_id = $1 AND namespace_id = $2", func(r *Removed) *int64 { return &r.Events }},
	{"DELETE FROM sessions WHERE chain_id = $1 AND namespace_id = $2", func(r *Removed) *int64 { return &r.Sessions }},
}

const sessionIDsOf = "SELECT session_id FROM sessions WHERE chain_id = $1 AND namespace_id = $2"

// Removed counts removed records.
type Removed struct{ Sessions, Events int64 }

// RemoveChain removes the records of a chain of the Store's namespace, and reports whether it did. It does not if the chain is no
// longer one that OldChains returns.
func (s *Store) RemoveChain(ctx context.Context, chainID string, before time.Time) (removed Removed, did bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		old, err := collect(ctx, tx, oldChainFields, isOldQuery, s.namespace.ID, before.UnixMilli(), chainID)
		if err != nil || len(old) == 0 {
			return err
		}
		did = true
		for _, removal := range removals {
			result, err := tx.ExecContext(ctx, removal.query, chainID, s.namespace.ID)
			if err != nil {
				return err
			}
			if removal.counts != nil {
				if *removal.counts(&removed), err = result.RowsAffected(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return Removed{}, false, fmt.Errorf("remove the records of chain %q: %w", chainID, err)
	}
	return removed, did, nil
}

// settledQuery selects incidents that were resolved before $1, and that no chain works on.
const settledQuery = `
SELECT id FROM incidents WHERE resolved_at < $1 AND NOT EXISTS (
    SELECT 1 FROM incident_chains WHERE incident_chains.incident_id = incidents.id AND incident_chains.status <> $2)`

// RemoveIncidents removes the incidents of all namespaces that were resolved before a time and that no chain works on, and the
// notes of notifications that were sent before then. It returns the number of incidents.
func (s *Store) RemoveIncidents(ctx context.Context, before time.Time) (incidents int64, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		for _, query := range []string{
			"DELETE FROM incident_chains WHERE incident_id IN (" + settledQuery + ")",
			"DELETE FROM incidents WHERE id IN (" + settledQuery + ")",
		} {
			result, err := tx.ExecContext(ctx, query, before.UnixMilli(), string(escalation.ChainEnded))
			if err == nil {
				incidents, err = result.RowsAffected()
			}
			if err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM notifications WHERE sent_at < $1", before.UnixMilli())
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("remove old incidents: %w", err)
	}
	return incidents, nil
}
