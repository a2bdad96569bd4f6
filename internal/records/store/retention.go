package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
)

// claimQuery records that a holder has a duty, unless another holder has the duty now.
const claimQuery = `
INSERT INTO duties (name, holder, until) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE duties.holder = excluded.holder OR duties.until <= $4 OR duties.until > $5`

const takenQuery = "SELECT COUNT(*) > 0 FROM duties WHERE name = $1 AND holder <> $2 AND until > $3 AND until <= $4"

// ClaimDuty gives a duty to holder, until the given time, and returns true. If another holder has the duty now,
// ClaimDuty changes nothing and returns false. In that case it does not wait for other writers, because many workers
// ask often.
//
// A duty that ends much later than the caller's own would end was claimed with a wrong clock. It counts as free,
// because the holder may be gone, and nobody else could have the duty until then.
func (s *Store) ClaimDuty(ctx context.Context, name, holder string, now, until time.Time) (claimed bool, err error) {
	defer s.count(OpSweep, &err)
	at, err := s.at(ctx, now)
	if err != nil {
		return false, err
	}
	now, until = at, at.Add(until.Sub(now))
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
		result, err := tx.ExecContext(ctx, claimQuery, name, holder, until.UnixMilli(), now.UnixMilli(),
			latestClaim(now, until))
		if err == nil {
			rows, err = result.RowsAffected()
		}
		return err
	})
	return rows > 0, err
}

// oldQuery selects chains whose records may be removed. All sessions of such a chain are closed, and all its sessions
// and events are older than $1. The chain has no incident, and no session of another chain continues a session of this
// chain. Chains with the same workflow ID are told apart by the run ID with which they began, except by locks.
const oldQuery = `
SELECT old.chain_id, old.first_run_id FROM (
    SELECT chain_id, first_run_id FROM sessions WHERE started_at < $1
    UNION SELECT chain_id, first_run_id FROM events WHERE occurred_at < $1
) AS old
WHERE NOT EXISTS (
    SELECT 1 FROM sessions AS s WHERE s.chain_id = old.chain_id AND s.first_run_id = old.first_run_id
        AND (s.ended_at IS NULL OR s.ended_at >= $1 OR s.started_at >= $1)
) AND NOT EXISTS (
    SELECT 1 FROM events AS e WHERE e.chain_id = old.chain_id AND e.first_run_id = old.first_run_id
        AND e.occurred_at >= $1
) AND NOT EXISTS (
    SELECT 1 FROM incident_chains AS i
    WHERE i.chain_id = old.chain_id AND i.first_run_id = old.first_run_id
) AND NOT EXISTS (
    SELECT 1 FROM service_locks WHERE service_locks.chain_id = old.chain_id
) AND NOT EXISTS (
    SELECT 1 FROM sessions AS own JOIN sessions AS child ON child.parent_session_id = own.id
    WHERE own.chain_id = old.chain_id AND own.first_run_id = old.first_run_id
        AND (child.chain_id <> own.chain_id OR child.first_run_id <> own.first_run_id)
)`

const (
	oldChainsQuery = oldQuery + " AND (old.chain_id > $2 OR old.chain_id = $2 AND old.first_run_id > $3)" +
		" ORDER BY old.chain_id, old.first_run_id LIMIT 100"
	isOldQuery = oldQuery + " AND old.chain_id = $2 AND old.first_run_id = $3"
)

// OldChain is a chain whose records can be removed, unless the chain still runs.
type OldChain struct {
	escalation.ChainRun

	// SessionIDs holds the IDs of the chain's conversations.
	SessionIDs []string
}

// OldChains returns chains whose latest record is older than before. It returns at most 100 chains, sorted by ID and
// run. To read the next 100 chains, pass the last chain of the previous result as the argument after.
//
// OldChains omits four kinds of chains whose records are still needed: chains with an open session, chains that
// belong to an incident, chains that lock a service, and chains with a session that another chain continues.
func (s *Store) OldChains(
	ctx context.Context, before time.Time, after escalation.ChainRun,
) (chains []OldChain, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		chains, err = collect(ctx, tx, oldChainFields, oldChainsQuery, before.UnixMilli(), after.ChainID,
			after.FirstRunID)
		for i := range chains {
			if err == nil {
				chains[i].SessionIDs, err = sessionIDs(ctx, tx, chains[i].ChainRun)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find old chains: %w", err)
	}
	return chains, nil
}

func oldChainFields(c *OldChain) []field {
	return []field{{"chain_id", &c.ChainID}, {"first_run_id", &c.FirstRunID}}
}

// Within a chain, a session comes after its parent. To be removed, it must come before it.
const sessionIDsQuery = "SELECT session_id FROM sessions WHERE " + ofChainRun + " ORDER BY id DESC"

func sessionIDs(ctx context.Context, q querier, chain escalation.ChainRun) ([]string, error) {
	return collect(ctx, q, func(id *string) []field { return []field{{"session_id", id}} }, sessionIDsQuery,
		runArgs(chain)...)
}

// Removed counts removed records.
type Removed struct{ Sessions, Events int64 }

// RemoveChain removes the records of a chain, and returns true. If OldChains would not return the
// chain now, RemoveChain changes nothing and returns false. What the chain has cost stays in the sums of all sessions.
func (s *Store) RemoveChain(
	ctx context.Context, chain escalation.ChainRun, before time.Time,
) (removed Removed, did bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		old, err := collect(ctx, tx, oldChainFields, isOldQuery, before.UnixMilli(), chain.ChainID, chain.FirstRunID)
		if err != nil || len(old) == 0 {
			return err
		}
		did = true
		sessions, err := sessionIDs(ctx, tx, chain)
		if err != nil {
			return err
		}
		for _, id := range sessions {
			if err := removeSession(ctx, tx, id); err != nil {
				return err
			}
		}
		removed.Sessions = int64(len(sessions))
		result, err := tx.ExecContext(ctx, "DELETE FROM events WHERE "+ofChainRun, runArgs(chain)...)
		if err == nil {
			removed.Events, err = result.RowsAffected()
		}
		return err
	})
	if err != nil {
		return Removed{}, false, fmt.Errorf("remove the records of chain %q: %w", chain.ChainID, err)
	}
	return removed, did, nil
}

// sessionRemovals lists the statements that remove everything that belongs to the session $1, and nothing else. The
// first two keep what it has cost, because budgets and reports count money and not records. The session comes last,
// because other records refer to it. Its events and its turn are removed with its chain, or by their age.
var sessionRemovals = []string{
	keepCost("started_at", "COUNT(*), SUM(cost_usd), SUM(CASE WHEN cost_estimated THEN cost_usd ELSE 0 END),"+
		" SUM(CASE WHEN cost_estimated AND attempts = 0 AND budget_usd > cost_usd THEN budget_usd - cost_usd ELSE 0 "+
		"END)",
		"sessions AS s WHERE s.session_id = $1"),
	keepCost("r.started_at", "0, SUM(r.cost_usd), SUM(CASE WHEN r.cost_estimated THEN r.cost_usd ELSE 0 END), 0.0",
		"replaced_reports AS r JOIN sessions AS s ON s.session_id = r.session_id WHERE r.session_id = $1"),
	"DELETE FROM ledger WHERE session_id = $1",
	"DELETE FROM replaced_reports WHERE session_id = $1",
	"DELETE FROM calls WHERE session_id = $1",
	"DELETE FROM memory_uses WHERE session_id = $1",
	"DELETE FROM sessions WHERE session_id = $1",
}

// keepCost returns a statement that adds sums to the removed costs.
func keepCost(startedAt, sums, from string) string {
	const kind = "s.tier, s.model, s.trigger, s.conclusion, s.services"
	return fmt.Sprintf(`
INSERT INTO removed_costs (quarter, tier, model, trigger, conclusion, services, sessions, usd, estimated_usd, unknown_usd)
SELECT %s / %d, %s, %s FROM %s GROUP BY 1, %s
ON CONFLICT (quarter, tier, model, trigger, conclusion, services) DO UPDATE SET
    sessions = removed_costs.sessions + excluded.sessions, usd = removed_costs.usd + excluded.usd,
    estimated_usd = removed_costs.estimated_usd + excluded.estimated_usd,
    unknown_usd = removed_costs.unknown_usd + excluded.unknown_usd`, startedAt, quarter.Milliseconds(), kind, sums, from, kind)
}

// daysOfCosts is the time for which the costs of removed sessions are kept by the quarter of an hour. After it, they
// are kept by the day.
const daysOfCosts = 400

// compactQueries turn the costs of removed sessions before the quarter $1 into sums of days (UTC). They stand at noon,
// which belongs to the day of the same date in nearly all zones.
var compactQueries = []string{
	`
INSERT INTO removed_costs (quarter, tier, model, trigger, conclusion, services, sessions, usd, estimated_usd, unknown_usd)
SELECT (quarter / 96) * 96 + 48, tier, model, trigger, conclusion, services,
    CAST(SUM(sessions) AS BIGINT), SUM(usd), SUM(estimated_usd), SUM(unknown_usd)
FROM removed_costs WHERE quarter < $1 AND quarter % 96 <> 48
GROUP BY 1, tier, model, trigger, conclusion, services
ON CONFLICT (quarter, tier, model, trigger, conclusion, services) DO UPDATE SET
    sessions = removed_costs.sessions + excluded.sessions, usd = removed_costs.usd + excluded.usd,
    estimated_usd = removed_costs.estimated_usd + excluded.estimated_usd,
    unknown_usd = removed_costs.unknown_usd + excluded.unknown_usd`,
	"DELETE FROM removed_costs WHERE quarter < $1 AND quarter % 96 <> 48",
}

// CompactCosts keeps what removed sessions have cost more than 400 days before a time as sums of days, so that they
// grow with the days and not with the sessions. No budget asks for a part of such a day, and reports keep their sums.
func (s *Store) CompactCosts(ctx context.Context, now time.Time) error {
	before := quarterOf((calendar.Of(now.UTC()) - daysOfCosts).Begin(time.UTC))
	err := s.write(ctx, func(tx *sql.Tx) error {
		for _, query := range compactQueries {
			if _, err := tx.ExecContext(ctx, query, before); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add up the costs of removed sessions by days: %w", err)
	}
	return nil
}

func removeSession(ctx context.Context, tx *sql.Tx, sessionID string) error {
	for _, query := range sessionRemovals {
		if _, err := tx.ExecContext(ctx, query, sessionID); err != nil {
			return err
		}
	}
	return nil
}

// settledQuery selects incidents that were resolved before $1. It omits incidents on which a chain still works.
const settledQuery = `
SELECT id FROM incidents WHERE resolved_at < $1 AND NOT EXISTS (
    SELECT 1 FROM incident_chains WHERE incident_chains.incident_id = incidents.id AND incident_chains.status <> $2)`

// RemoveIncidents removes the incidents that were resolved before the given time, and returns
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
