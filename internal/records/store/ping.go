package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq/pqerror"
)

const pingQuery = "SELECT COUNT(*) FROM namespaces"

// CheckWritable checks that the database takes writes. A standby answers queries, but keeps no records.
func (s *Store) CheckWritable(ctx context.Context) error {
	return s.write(ctx, func(*sql.Tx) error { return nil })
}

// place returns the path of a database file, or the URL of a database server without user and password. Errors contain
// it.
type place string

// explain returns err with the name of the database. If the database takes no writes, explain says so, and what to do.
// A retry can succeed, because a standby can become the primary.
func (p place) explain(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case isStandby(err):
		return fmt.Errorf("the database %s takes no writes, because %s: %w", p, p.refusal(), err)
	case isUnwritable(err):
		return fmt.Errorf("the database %s cannot be opened for writing: %w: make the file and its directory "+
			"writable or choose "+
			"another place", p, err)
	}
	return fmt.Errorf("%s the database %s: %w", doing, p, err)
}

// refusal says which servers take no writes, and what to do.
func (p place) refusal() string {
	if strings.Contains(string(p), ",") {
		return "each of its servers that answers is a standby or read-only (default_transaction_read_only): promote " +
			"one, or let CLAUDEOPS_DATABASE_URL name the primary"
	}
	return "the server is a standby or read-only: let CLAUDEOPS_DATABASE_URL name the primary, or all servers " +
		"separated by commas"
}

// isStandby reports whether a server of PostgreSQL has refused to write. During recovery it refuses to begin a
// transaction that writes, as a feature that it does not support.
func isStandby(err error) bool {
	code := postgresCode(err)
	return code == pqerror.ReadOnlySQLTransaction || code == pqerror.FeatureNotSupported || errors.Is(err, errNoPrimary)
}

// Ping checks that the database answers a query.
func (s *Store) Ping(ctx context.Context) error {
	var count int
	if err := s.db.QueryRowContext(ctx, pingQuery).Scan(&count); err != nil {
		return s.place.explain("ask", err)
	}
	return nil
}
