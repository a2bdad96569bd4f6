package store

import (
	"context"
	"fmt"
)

const pingQuery = "SELECT COUNT(*) FROM namespaces"

// Ping checks that the database answers a query.
func (s *Store) Ping(ctx context.Context) error {
	var count int
	if err := s.db.QueryRowContext(ctx, pingQuery).Scan(&count); err != nil {
		return fmt.Errorf("ask the database: %w", err)
	}
	return nil
}
