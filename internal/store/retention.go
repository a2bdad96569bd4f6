package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// claimQuery records that a holder has a duty, unless another holder has the duty now.
const claimQuery = `
INSERT INTO duties (name, holder, until) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE duties.holder = excluded.holder OR duties.until <= $4 OR duties.until > $5`

const takenQuery = "SELECT COUNT(*) > 0 FROM duties WHERE name = $1 AND holder <> $2 AND until > $3 AND until <= $4"

// ClaimDuty gives a duty to holder, until the given time, and returns true. If another holder has the duty now, ClaimDuty
// changes nothing and returns false. In that case it does not wait for other writers, because many workers ask often.
//
// A duty that ends much later than the caller's own would end was claimed with a wrong clock. It counts as free, because the
// holder may be gone, and nobody else could have the duty until then.
func (s *Store) ClaimDuty(ctx context.Context, name, holder string, now, until time.Time) (claimed bool, err error) {
	var taken bool
	err = s.db.QueryRowContext(ctx, takenQuery, name, holder, now.UnixMilli(), latestClaim(now, until)).Scan(&taken)
	if err == nil && !taken {
		claimed, err = s.claimDuty(ctx, name, holder, now, until)
	}
	if err != nil {
		return false, fmt.Errorf("claim the duty %q: %w", name, err)
	}
	return claimed, nil
}

// latestClaim returns the latest believable end of another holder's claim, in milliseconds.
func latestClaim(now, until time.Time) int64 { return now.Add(2 * until.Sub(now)).UnixMilli() }

func (s *Store) claimDuty(ctx context.Context, name, holder string, now, until time.Time) (bool, error) {
	var rows int64
	err := s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, claimQuery, name, holder, until.UnixMilli(), now.UnixMilli(), latestClaim(now, until))
		if err == nil {
			rows, err = result.RowsAffected()
		}
		return err
	})
	return rows > 0, err
}

// oldQuery selects chains of the namespace $1 whose records may be removed. All sessions of such a chain are closed, and all
// its sessions and events are older than $2. The chain has no incident and no lock, and no session of another chain continues
// a session of this chain.
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

// OldChain is a chain whose records can be removed, unless the chain still runs.
type OldChain struct {
	ChainID string
	// SessionIDs holds the IDs of the chain's conversations.
	SessionIDs []string
}

// OldChains returns chains of the Store's namespace whose latest record is older than before. It returns at most 100
// chains, sorted by ID. To read the next 100 chains, pass the last ID of the previous result as the argument after.
//
// OldChains omits four kinds of chains whose records are still needed: chains with an open session, chains that
// belong to an incident, chains that lock a service, and chains with a session that another chain continues.
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

// removals lists the statements that remove all records of a chain. The sessions come last, because other records refer to
// sessions.
var removals = []struct {
	query string
	// counts returns the field of Removed that counts the rows; nil if Removed does not count them.
	counts func(*Removed) *int64
}{
	{"DELETE FROM ledger WHERE session_id IN (" + sessionIDsOf + ")", nil},
	{"DELETE FROM replaced_reports WHERE session_id IN (" + sessionIDsOf + ")", nil},
	{"DELETE FROM calls WHERE session_id IN (" + sessionIDsOf + ")", nil},
	{"DELETE FROM memory_uses WHERE session_id IN (" + sessionIDsOf + ")", nil},
	{"DELETE FROM events WHERE chain_id = $1 AND namespace_id = $2", func(r *Removed) *int64 { return &r.Events }},
	{"DELETE FROM sessions WHERE chain_id = $1 AND namespace_id = $2", func(r *Removed) *int64 { return &r.Sessions }},
}

const sessionIDsOf = "SELECT session_id FROM sessions WHERE chain_id = $1 AND namespace_id = $2"

// Removed counts removed records.
type Removed struct{ Sessions, Events int64 }

// RemoveChain removes the records of a chain of the Store's namespace, and returns true. If OldChains would not return the
// chain now, RemoveChain changes nothing and returns false.
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

// settledQuery selects incidents that were resolved before $1. It omits incidents on which a chain still works.
const settledQuery = `
SELECT id FROM incidents WHERE resolved_at < $1 AND NOT EXISTS (
    SELECT 1 FROM incident_chains WHERE incident_chains.incident_id = incidents.id AND incident_chains.status <> $2)`

// RemoveIncidents removes the incidents that were resolved before the given time, in all namespaces, and returns
// their number. It keeps incidents on which a chain still works. It also removes the records of notifications that
// were sent before the given time.
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
