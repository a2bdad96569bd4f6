package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/lib/pq/pqerror"
)

const pingQuery = "SELECT COUNT(*) FROM namespaces"

// CheckWritable checks that the database takes writes. A standby answers queries, but keeps no records.
func (s *Store) CheckWritable(ctx context.Context) error {
	return s.write(ctx, func(*sql.Tx) error { return nil })
}

// errReadOnly marks a database that takes no writes. A retry can succeed, because a standby can become the primary.
var errReadOnly = errors.New("the database takes no writes")

// explainReadOnly says what the refusal of a write means.
func explainReadOnly(err error) error {
	// During recovery the server refuses to begin a transaction that writes, as a feature that it does not support.
	if code := postgresCode(err); code == pqerror.ReadOnlySQLTransaction || code == pqerror.FeatureNotSupported {
		return fmt.Errorf("%w, because the server is a standby or read-only: let CLAUDEOPS_DATABASE_URL name the primary, or all servers "+
			"separated by commas: %w", errReadOnly, err)
	}
	return err
}

// Ping checks that the database answers a query.
func (s *Store) Ping(ctx context.Context) error {
	var count int
	if err := s.db.QueryRowContext(ctx, pingQuery).Scan(&count); err != nil {
		return fmt.Errorf("ask the database: %w", err)
	}
	return nil
}
