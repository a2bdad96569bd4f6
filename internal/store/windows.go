package store

import (
	"context"
	"fmt"
)

const windowsQuery = `
SELECT model, context_window FROM sessions
WHERE id IN (SELECT MAX(id) FROM sessions WHERE context_window > 0 GROUP BY model)`

// ContextWindows returns the context window, in tokens, that the CLI reported last for
// each model, by the model's name as configured. A model without a report is not in it.
func (s *Store) ContextWindows(ctx context.Context) (map[string]int, error) {
	type row struct {
		model  string
		window int
	}
	rows, err := collect(ctx, s.db, func(r *row) []field {
		return []field{{"model", &r.model}, {"context_window", &r.window}}
	}, windowsQuery)
	if err != nil {
		return nil, fmt.Errorf("read the reported context windows: %w", err)
	}
	windows := make(map[string]int, len(rows))
	for _, r := range rows {
		windows[r.model] = r.window
	}
	return windows, nil
}
