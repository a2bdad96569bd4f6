package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

const windowQuery = `SELECT context_window FROM sessions WHERE model = $1 AND context_window > 0 ORDER BY id DESC LIMIT 1`

// ContextWindow returns the context window, in tokens, that the CLI last reported for a model; 0 if the CLI never
// reported it. The argument model is the configured name of the model.
func (s *Store) ContextWindow(ctx context.Context, model string) (int, error) {
	var window int
	err := s.db.QueryRowContext(ctx, windowQuery, model).Scan(&window)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("read the context window of model %s: %w", model, err)
	}
	return window, nil
}
