package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
)

// Rename gives the services of open and remembered incidents, of locks, of the ledger, of memories, of open sessions
// and of recent repairs the names that the function canonical returns. Call it when the operator's services file has
// changed: without it, a renamed service would have no incident, no lock, no cooldown and no memory. Rename returns how
// many rows it has changed.
//
// If two chains have locked a service under two names, the lock with the older name stays as it is until it is
// released.
func (s *Store) Rename(ctx context.Context, canonical func(name string) string) (changed int, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		r := renaming{tx: tx, canonical: canonical}
		for _, table := range []func(context.Context) error{r.incidents, r.locks, r.ledger, r.memories, r.sessions} {
			if err := table(ctx); err != nil {
				return err
			}
		}
		changed = r.changed
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("give the services in the records their names in the services file: %w", err)
	}
	return changed, nil
}

// renaming renames services in one transaction.
type renaming struct {
	tx        *sql.Tx
	canonical func(name string) string
	changed   int
}

func (r *renaming) update(ctx context.Context, query string, args ...any) error {
	result, err := r.tx.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	rows, err := result.RowsAffected()
	r.changed += int(rows)
	return err
}

func (r *renaming) incidents(ctx context.Context) error {
	rows, err := plainRows(ctx, r.tx, identityFields,
		"SELECT "+columns(identityFields(new(incidentRow)))+" FROM incidents ORDER BY id")
	for _, row := range rows {
		if err != nil {
			return err
		}
		var renamed []string
		for _, service := range row.Services {
			renamed = append(renamed, r.canonical(service))
		}
		if renamed = escalation.UniqueServices(renamed); !slices.Equal(renamed, row.Services) && len(renamed) > 0 {
			err = r.update(ctx, "UPDATE incidents SET services = $1 WHERE id = $2", jsonText[[]string]{&renamed},
				row.row)
		}
	}
	return err
}

const renameLockQuery = `
UPDATE service_locks SET service_key = $1, service = $2
WHERE service_key = $3 AND NOT EXISTS (SELECT 1 FROM service_locks AS other WHERE other.service_key = $1 AND other.service_key <> $3)`

func (r *renaming) locks(ctx context.Context) error {
	locks, err := collect(ctx, r.tx, lockFields, selectLocks+" ORDER BY service_key")
	for _, lock := range locks {
		name := r.canonical(lock.Service)
		if err == nil && name != lock.Service && lock.Service != everyService {
			err = r.update(ctx, renameLockQuery, escalation.ServiceKey(name), name, escalation.ServiceKey(lock.Service))
		}
	}
	return err
}

// renameEntryQuery also gives the entry a free position, because its session may have entries with the new name.
const renameEntryQuery = `
UPDATE ledger SET service = $1, service_key = $6, position = position + (
    SELECT COALESCE(MAX(position), 0) FROM ledger AS other WHERE other.session_id = $2 AND other.service = $1 AND other.kind = $3
) WHERE session_id = $2 AND service = $4 AND kind = $3 AND position = $5`

func (r *renaming) ledger(ctx context.Context) error {
	rows, err := collect(ctx, r.tx, ledgerFields,
		"SELECT "+columns(ledgerFields(new(ledgerRow)))+" FROM ledger ORDER BY id")
	for i := range rows {
		row := &rows[i]
		name := r.canonical(row.Service)
		if err == nil && name != row.Service {
			err = r.update(ctx, renameEntryQuery, name, row.SessionID, string(row.Kind), row.Service, row.position,
				escalation.ServiceKey(name))
		}
	}
	return err
}

func (r *renaming) memories(ctx context.Context) error {
	rows, err := collect(ctx, r.tx, memoryFields, memoriesQuery)
	for i := range rows {
		name := r.canonical(rows[i].Service)
		if err != nil || rows[i].Service == "" || name == rows[i].Service {
			continue
		}
		rows[i].Service = name
		err = r.update(ctx, "UPDATE memories SET service_key = $1, service = $2, words = $3 WHERE id = $4",
			escalation.ServiceKey(name), name, memory.SearchText(rows[i].Proposal()), rows[i].row)
	}
	return err
}

// renamedSessions selects the open sessions, and the repairs of the last month, which later repairs of the same service
// are told of.
const renamedSessions = ` WHERE ended_at IS NULL OR tier >= $1 AND NOT dry_run
    AND started_at > (SELECT MAX(started_at) FROM sessions) - $2 ORDER BY id`

// sessions renames the services at which sessions look or work. The ends of open sessions are compared with incidents
// by these names. An ended repair keeps its verdict, and gets the new names of the verdict's services, too.
func (r *renaming) sessions(ctx context.Context) error {
	open, err := collect(ctx, r.tx, sessionFields, selectSessions+renamedSessions,
		int(escalation.TierSafeRepair), escalation.IncidentMemory.Milliseconds())
	for i := range open {
		var renamed []string
		for _, service := range open[i].Scope {
			renamed = append(renamed, r.canonical(service))
		}
		if verdict := open[i].Verdict; verdict != nil {
			for _, service := range verdict.Services {
				if name := r.canonical(service); name != service {
					renamed = append(renamed, name)
				}
			}
		}
		if renamed = escalation.UniqueServices(renamed); err == nil && len(renamed) > 0 &&
			!slices.Equal(renamed, open[i].Scope) {
			err = r.update(ctx, "UPDATE sessions SET scope = $1 WHERE id = $2", jsonText[[]string]{&renamed},
				open[i].ID)
		}
	}
	return err
}
