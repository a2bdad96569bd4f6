package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// ServiceLock is the lock of a chain on a service. While the lock exists, no other chain repairs the service.
type ServiceLock struct {
	// Service is the name of the service; empty if the chain has locked all services, because it repairs without naming
	// a service.
	Service string `json:"service"`
	ChainID string `json:"chain_id"`
	// Since is the time at which the chain last locked the service. This is the start of the session that did so.
	Since time.Time `json:"since"`
}

var selectLocks = "SELECT " + columns(lockFields(new(ServiceLock))) + " FROM service_locks"

// ServiceLocks returns the locks of all chains, ordered by service.
func (s *Store) ServiceLocks(ctx context.Context) ([]ServiceLock, error) {
	locks, err := collect(ctx, s.db, lockFields, selectLocks+" ORDER BY service_key")
	if err != nil {
		return nil, fmt.Errorf("read the locks on services: %w", err)
	}
	return locks, nil
}

const (
	releaseQuery     = "DELETE FROM service_locks WHERE chain_id = $1"
	releaseLockQuery = "DELETE FROM service_locks WHERE service_key = $1 AND service = $2 AND chain_id = $3 AND " +
		"since = $4"
	releaseAllQuery = "DELETE FROM service_locks WHERE service_key = $1 AND chain_id = $2"
)

// everyService is the service name in a lock on all services. It is not a valid name of a service.
const everyService = ""

// ReleaseServices releases all locks of a chain. If the chain has no locks, ReleaseServices does nothing.
func (s *Store) ReleaseServices(ctx context.Context, chainID string) (err error) {
	defer s.count(OpRelease, &err)
	err = s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, releaseQuery, chainID)
		return err
	})
	if err != nil {
		return fmt.Errorf("release the services of chain %q: %w", chainID, err)
	}
	return nil
}

// ReleaseLock releases a lock of a chain. If the lock is gone, or was taken again after the caller
// read it, ReleaseLock returns false and changes nothing. So a new run of the chain keeps the locks that it has taken.
func (s *Store) ReleaseLock(ctx context.Context, lock ServiceLock) (released bool, err error) {
	var rows int64
	err = s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, releaseLockQuery,
			escalation.ServiceKey(lock.Service), lock.Service, lock.ChainID, millis{&lock.Since})
		if err == nil {
			rows, err = result.RowsAffected()
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("release service %q from chain %q: %w", lock.Service, lock.ChainID, err)
	}
	return rows > 0, nil
}

// lockServices locks services for the chain of session, except services that another chain has locked. If services is
// empty, lockServices locks all services. If services is not empty, lockServices first releases the chain's lock on all
// services.
func lockServices(ctx context.Context, tx *sql.Tx, session escalation.Session, services []string) error {
	if len(services) == 0 {
		services = []string{everyService}
	} else if _, err := tx.ExecContext(ctx, releaseAllQuery, everyService, session.ChainID); err != nil {
		return fmt.Errorf("release the services that the chain has not named: %w", err)
	}
	for _, service := range services {
		lock := ServiceLock{Service: service, ChainID: session.ChainID, Since: session.StartedAt}
		query, args := insertInto("service_locks", lockFields(&lock))
		query += " ON CONFLICT (service_key) DO UPDATE SET since = excluded.since WHERE service_locks.chain_id = " +
			"excluded.chain_id"
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			return fmt.Errorf("lock service %q: %w", service, err)
		}
	}
	return nil
}

// busyQuery returns a query for the locks of other chains. The argument services is the number of service keys that
// are compared. If it is 0, the query selects all locks of other chains.
func busyQuery(services int) string {
	query := selectLocks + " WHERE chain_id <> $1"
	if services > 0 {
		query += " AND service_key IN (" + placeholders(2, services) + ")"
	}
	return query + " ORDER BY service_key"
}

// busyServices returns the locks of other chains that forbid the requested repair. A lock on all services forbids
// every repair. If request names no service, any lock forbids the repair.
func busyServices(
	ctx context.Context, q querier, request escalation.AdmissionRequest,
) ([]escalation.BusyService, error) {
	var keys []any
	if len(request.Services) > 0 {
		keys = append(keys, everyService)
		for _, service := range request.Services {
			keys = append(keys, escalation.ServiceKey(service))
		}
	}
	locks, err := collect(ctx, q, lockFields, busyQuery(len(keys)), append([]any{request.ChainID}, keys...)...)
	var busy []escalation.BusyService
	for _, lock := range locks {
		busy = append(busy, escalation.BusyService{Service: lock.Service, ChainID: lock.ChainID})
	}
	return busy, err
}
