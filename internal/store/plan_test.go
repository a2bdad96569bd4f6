package store

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQueriesUseIndexes has SQLite explain the queries: none may read a whole table or index one
// for the occasion, or reading a chain would take longer with every chain that ever ran.
func TestQueriesUseIndexes(t *testing.T) {
	t.Parallel()
	s := single(t, filepath.Join(t.TempDir(), "ops.db"))
	for name, query := range map[string]string{
		"forward":    forwardQuery,
		"backward":   backwardQuery,
		"session id": selectSessions + " WHERE session_id = $1",
		"chain":      selectSessions + " WHERE chain_id = $1 ORDER BY sequence",
		"since":      selectSessions + " WHERE started_at >= $1 ORDER BY started_at",
		"events":     selectEvents + " WHERE chain_id = $1 ORDER BY id",
		"window":     windowQuery,
		"running":    runningQuery,
		"delivered":  deliveredQuery,
		"replaced":   selectReplaced + " WHERE session_id = $1 ORDER BY id",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows, err := s.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, 1)
			require.NoError(t, err)
			defer func() { require.NoError(t, rows.Close()) }()
			var id, parent, unused int
			var step string
			for rows.Next() {
				require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
				require.NotRegexp(t, "^SCAN (sessions|child|above|events|replaced_reports|notifications)|AUTOMATIC", step)
			}
			require.NoError(t, rows.Err())
			require.NotEmpty(t, step)
		})
	}
}
