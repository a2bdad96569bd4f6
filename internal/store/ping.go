package store

import (
	"context"
	"fmt"
)

const pingQuery = "SELECT COUNT(*) FROM namespaces"

// Ping reads from the database, to check that it answers.
func (s *Store) Ping(ctx context.Context) error {
	var count int
	if err := s.db.QueryRowContext(ctx, pingQuery).Scan(&count); err != nil {
		return fmt.Errorf("ask the database: %w", err)
	}
	return nil
}
