package store

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"
)

// TestMigrateKeepsRecords opens a database that an earlier release has written.
func TestMigrateKeepsRecords(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ops.db")
	db, err := sql.Open("sqlite", sqliteDSN(path))
	require.NoError(t, err)
	provider, err := migrator(db, goose.DialectSQLite3, "sqlite")
	require.NoError(t, err)
	_, err = provider.UpTo(t.Context(), 2)
	require.NoError(t, err)
	for _, statement := range []string{
		`INSERT INTO sessions (chain_id, sequence, session_id, tier, model, trigger, continuity, continuity_reason, started_at, ended_at, status,
			cost_usd, cost_estimated, reported_total_usd, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, context_tokens,
			context_window, turns, duration_ms, reported_session_id, cli_version, attempts, host, services, error)
			VALUES ('chain', 1, 'old', 2, 'sonnet', 'manual', 'fresh', 'first_tier', 1, 2, 'completed',
			0.5, 0, 0.5, 1, 1, 1, 1, 1, 1, 1, 1, '', '', 1, '', '[]', '')`,
		`INSERT INTO replaced_reports (session_id, ended_at, report) VALUES ('old', 1, '{"status":"failed","cost_usd":0.25}')`,
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())

	s := single(t, path)
	old, err := s.BySessionID(t.Context(), "old")
	require.NoError(t, err)
	require.Zero(t, old.BudgetUSD)
	require.False(t, old.Forced)
	require.Empty(t, old.Purpose)
	spent, err := daySpent(t.Context(), s.db, old.StartedAt)
	require.NoError(t, err)
	require.InDelta(t, 0.75, spent, 1e-9, "what was replaced before counts, too")
}
