package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// ServiceLock is the lock of a chain on a service, so that no other chain repairs the service.
type ServiceLock struct {
	Service string `json:"service"`
	ChainID string `json:"chain_id"`
	// Since is the start of the chain's latest session that locked the service.
	Since time.Time `json:"since"`
	// Namespace and NamespaceID are the name and the ID of the chain's Temporal namespace.
	Namespace   string `json:"namespace,omitempty"`
	NamespaceID string `json:"namespace_id,omitempty"`
}

var selectLocks = "SELECT " + columns(lockFields(new(ServiceLock))) + " FROM service_locks"

// ServiceLocks returns the locks of the chains of all namespaces, by service.
func (s *Store) ServiceLocks(ctx context.Context) ([]ServiceLock, error) {
	locks, err := collect(ctx, s.db, lockFields, selectLocks+" ORDER BY service")
	if err != nil {
		return nil, fmt.Errorf("read the locks on services: %w", err)
	}
	return locks, nil
}

const (
	releaseQuery     = "DELETE FROM service_locks WHERE chain_id = $1 AND namespace_id = $2"
	releaseLockQuery = "DELETE FROM service_locks WHERE service = $1 AND chain_id = $2 AND namespace_id = $3 AND since = $4"
)

// ReleaseServices releases all locks of a chain. A chain without locks is not an error.
func (s *Store) ReleaseServices(ctx context.Context, chainID string) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, releaseQuery, chainID, s.namespace.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("release the services of chain %q: %w", chainID, err)
	}
	return nil
}

// ReleaseLock releases lock, of a chain of any namespace, and reports whether it did. It does nothing if the lock is gone, or
// was taken again after the caller read it. So a new run of the chain keeps the locks that it has taken.
func (s *Store) ReleaseLock(ctx context.Context, lock ServiceLock) (released bool, err error) {
	var rows int64
	err = s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, releaseLockQuery, lock.Service, lock.ChainID, lock.NamespaceID, millis{&lock.Since})
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

// lockServices locks services for the chain of session, except those that another chain has locked.
func lockServices(ctx context.Context, tx *sql.Tx, session escalation.Session, services []string) error {
	for _, service := range services {
		lock := ServiceLock{
			Service: service, ChainID: session.ChainID, Since: session.StartedAt,
			Namespace: session.Namespace, NamespaceID: session.NamespaceID,
		}
		query, args := insertInto("service_locks", lockFields(&lock))
		query += " ON CONFLICT (service) DO UPDATE SET since = excluded.since" +
			" WHERE service_locks.chain_id = excluded.chain_id AND service_locks.namespace_id = excluded.namespace_id"
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			return fmt.Errorf("lock service %q: %w", service, err)
		}
	}
	return nil
}

// busyQuery selects the locks of other chains on the given number of services, by service.
func busyQuery(services int) string {
	return selectLocks + " WHERE (chain_id <> $1 OR namespace_id <> $2) AND service IN (" + placeholders(3, services) +
		") ORDER BY service"
}

func busyServices(
	ctx context.Context, q querier, namespaceID string, request escalation.AdmissionRequest,
) ([]escalation.BusyService, error) {
	if len(request.Services) == 0 {
		return nil, nil
	}
	args := []any{request.ChainID, namespaceID}
	for _, service := range request.Services {
		args = append(args, service)
	}
	locks, err := collect(ctx, q, lockFields, busyQuery(len(request.Services)), args...)
	var busy []escalation.BusyService
	for _, lock := range locks {
		other := escalation.BusyService{Service: lock.Service, ChainID: lock.ChainID}
		if lock.NamespaceID != namespaceID {
			other.Namespace = lock.Namespace
		}
		busy = append(busy, other)
	}
	return busy, err
}
