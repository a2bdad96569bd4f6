package store

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
)

func openPostgres(t *testing.T, database string, parameters ...string) *Store {
	t.Helper()
	separator := "?"
	if strings.Contains(database, "?") {
		separator = "&"
	}
	s, err := OpenPostgres(t.Context(), database+separator+strings.Join(parameters, "&"), 2)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// TestPostgresFailures provokes failures in PostgreSQL itself.
func TestPostgresFailures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		provoke   func(t *testing.T, s, other *Store) error
		message   string
		transient bool
	}{
		"busy": {func(t *testing.T, s, other *Store) error {
			defer holdLock(t, other)()
			return open(t.Context(), s)
		}, "lock timeout", true},
		"slow": {func(t *testing.T, s, _ *Store) error {
			_, err := s.db.ExecContext(t.Context(), "SET statement_timeout = 10; SELECT pg_sleep(600)")
			return err
		}, "statement timeout", true},
		"closed":        {provokeClosed, "closed", true},
		"constraint":    {statement("INSERT INTO events (event_key) VALUES ('a')"), "not-null constraint", false},
		"wrong type":    {statement("UPDATE sessions SET turns = 'many'"), "invalid input syntax", false},
		"bad statement": {statement("SELEKT"), "syntax error", false},
		"no permission": {statement("SET ROLE pg_monitor; INSERT INTO events (event_key) VALUES ('a')"), "permission denied", true},
		"read-only": {func(t *testing.T, s, _ *Store) error {
			_, err := s.db.ExecContext(t.Context(), "SET transaction_read_only = on; UPDATE sessions SET turns = 1")
			return err
		}, "read-only transaction", true},
		"connection lost": {func(t *testing.T, s, other *Store) error {
			return s.write(t.Context(), func(tx *sql.Tx) error {
				must(t, other, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND "+inDatabase)
				_, err := tx.ExecContext(t.Context(), "UPDATE sessions SET turns = 1")
				return err
			})
		}, "connection", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := postgrestest.Database(t)
			s, other := openPostgres(t, database, "lock_timeout=10"), openPostgres(t, database)
			record(t, other, "before")
			err := test.provoke(t, s, other)
			require.ErrorContains(t, err, test.message)
			require.Equal(t, test.transient, IsTransient(err), "%v", err)
			record(t, other, "after")
		})
	}
}

// inDatabase selects the locks in the current database.
const inDatabase = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"

// holdLock keeps other writers waiting until release is called.
func holdLock(t *testing.T, s *Store) (release func()) {
	t.Helper()
	tx, err := s.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), s.dialect.lock)
	require.NoError(t, err)
	return func() { require.NoError(t, tx.Rollback()) }
}

func open(ctx context.Context, s *Store) error {
	_, err := s.OpenSession(ctx, session("new"), escalation.AdmissionRequest{}, lenient)
	return err
}

// TestPostgresCancel ends the context of a call that waits for another writer, or for a server that does not answer. No
// time limit could end the call.
func TestPostgresCancel(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"waits for a lock": false, "no answer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := postgrestest.Database(t)
			line := postgrestest.StartLine(t, database)
			other := openPostgres(t, database)
			opened := openPostgres(t, line.URL())
			config, err := postgresConfig(line.URL() + "&lock_timeout=0&statement_timeout=0&idle_in_transaction_session_timeout=0")
			require.NoError(t, err)
			opened.db = sql.OpenDB(connector{config, 0})
			t.Cleanup(func() { require.NoError(t, opened.db.Close()) })
			require.NoError(t, opened.db.PingContext(t.Context()))

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			failed := make(chan error, 1)
			release := holdLock(t, other)
			go func() { failed <- open(ctx, opened) }()
			const waiting = "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND " + inDatabase
			require.Eventually(t, func() bool { return postgrestest.Query(t, database, waiting) == "1" }, testPatience, pollInterval)
			if silent {
				line.Silence()
			}
			cancel()
			err = <-failed
			require.ErrorIs(t, err, context.Canceled)
			require.True(t, IsTransient(err))
			line.Mend()
			release()
			require.NoError(t, open(t.Context(), opened))
		})
	}
}
