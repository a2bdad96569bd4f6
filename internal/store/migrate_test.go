package store

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

// writeVersion makes a database with the schema of an earlier version, and has statements write into it.
func writeVersion(t *testing.T, version int64, statements ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "ops.db")
	db, err := sql.Open("sqlite", sqliteDSN(path))
	require.NoError(t, err)
	provider, err := migrator(db, goose.DialectSQLite3, "sqlite")
	require.NoError(t, err)
	_, err = provider.UpTo(t.Context(), version)
	require.NoError(t, err)
	for _, statement := range statements {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	return path
}

const oldSession = `INSERT INTO sessions (chain_id, sequence, session_id, tier, model, trigger, continuity, continuity_reason,
	started_at, ended_at, status, cost_usd, cost_estimated, reported_total_usd, input_tokens, output_tokens, cache_read_tokens,
	cache_creation_tokens, context_tokens, context_window, turns, duration_ms, reported_session_id, cli_version, attempts, host,
	services, error)
	VALUES ('chain', 1, 'old', 2, 'sonnet', 'manual', 'fresh', 'first_tier',
	1, 2, 'completed', 0.5, 0, 0.5, 1, 1, 1,
	1, 1, 1, 1, 1, '', '', 1, '', '[]', '')`

// TestMigrateKeepsRecords opens a database that an earlier release has written.
func TestMigrateKeepsRecords(t *testing.T) {
	t.Parallel()
	s := single(t, writeVersion(t, 2, oldSession,
		`INSERT INTO replaced_reports (session_id, ended_at, report) VALUES ('old', 1, '{"status":"failed","cost_usd":0.25}')`))
	old, err := s.BySessionID(t.Context(), "old")
	require.NoError(t, err)
	require.Zero(t, old.BudgetUSD)
	require.False(t, old.Forced)
	require.Empty(t, old.Purpose)
	spent, err := daySpent(t.Context(), s.db, old.StartedAt)
	require.NoError(t, err)
	require.InDelta(t, 0.75, spent, 1e-9, "what was replaced before counts, too")
}

// TestMigrateKeepsLedger opens a ledger in which all is from verdicts.
func TestMigrateKeepsLedger(t *testing.T) {
	t.Parallel()
	s := single(t, writeVersion(t, 8, oldSession,
		`INSERT INTO ledger (service, kind, position, at, chain_id, session_id, succeeded) VALUES ('web', 'restart', 1, 1000, 'chain', 'old', 1)`))
	entries, err := s.Ledger(t.Context(), time.Time{})
	require.NoError(t, err)
	require.Equal(t, []escalation.LedgerEntry{{
		Service: "web", Kind: escalation.ActionRestart, At: time.UnixMilli(1000).UTC(), ChainID: "chain", SessionID: "old", Succeeded: true,
	}}, entries)
	calls, err := s.Decisions(t.Context(), "chain")
	require.NoError(t, err)
	require.Empty(t, calls)
}
