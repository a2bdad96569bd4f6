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
}

var selectLocks = "SELECT " + columns(lockFields(new(ServiceLock))) + " FROM service_locks"

// ServiceLocks returns all locks, by service.
func (s *Store) ServiceLocks(ctx context.Context) ([]ServiceLock, error) {
	locks, err := collect(ctx, s.db, lockFields, selectLocks+" ORDER BY service")
	if err != nil {
		return nil, fmt.Errorf("read the locks on services: %w", err)
	}
	return locks, nil
}

const (
	releaseQuery     = "DELETE FROM service_locks WHERE chain_id = $1"
	releaseLockQuery = "DELETE FROM service_locks WHERE service = $1 AND chain_id = $2 AND since = $3"
)

// ReleaseServices releases all locks of a chain. A chain without locks is not an error.
func (s *Store) ReleaseServices(ctx context.Context, chainID string) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, releaseQuery, chainID)
		return err
	})
	if err != nil {
		return fmt.Errorf("release the services of chain %q: %w", chainID, err)
	}
	return nil
}

// ReleaseLock releases lock and reports whether it did. It does nothing if the lock is gone, or was taken again after
// the caller read it. So a new run of the chain keeps the locks that it has taken.
func (s *Store) ReleaseLock(ctx context.Context, lock ServiceLock) (released bool, err error) {
	var rows int64
	err = s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, releaseLockQuery, values(lockFields(&lock))...)
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

// lockServices locks the services of request for its chain, except those that another chain has locked.
func lockServices(ctx context.Context, tx *sql.Tx, request escalation.AdmissionRequest) error {
	for _, service := range request.Services {
		lock := ServiceLock{Service: service, ChainID: request.ChainID, Since: request.At}
		query, args := insertInto("service_locks", lockFields(&lock))
		query += " ON CONFLICT (service) DO UPDATE SET since = excluded.since WHERE service_locks.chain_id = excluded.chain_id"
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			return fmt.Errorf("lock service %q: %w", service, err)
		}
	}
	return nil
}

// busyQuery selects the locks of other chains on the given number of services, by service.
func busyQuery(services int) string {
	return selectLocks + " WHERE chain_id <> $1 AND service IN (" + placeholders(2, services) + ") ORDER BY service"
}

func busyServices(ctx context.Context, q querier, request escalation.AdmissionRequest) ([]escalation.BusyService, error) {
	if len(request.Services) == 0 {
		return nil, nil
	}
	args := []any{request.ChainID}
	for _, service := range request.Services {
		args = append(args, service)
	}
	locks, err := collect(ctx, q, lockFields, busyQuery(len(request.Services)), args...)
	var busy []escalation.BusyService
	for _, lock := range locks {
		busy = append(busy, escalation.BusyService{Service: lock.Service, ChainID: lock.ChainID})
	}
	return busy, err
}
