package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

func TestIsTransient(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"nil":            {nil, false},
		"unknown record": {fmt.Errorf("read: %w", ErrNotFound), false},
		"bad record":     {fmt.Errorf("write: %w", ErrInvalid), false},
		"conflict":       {fmt.Errorf("write: %w", ErrConflict), false},
		"bad database":   {fmt.Errorf("open: %w", errUnusable), false},
		"deadline":       {context.DeadlineExceeded, true},
		"unknown":        {errors.New("connection reset"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, IsTransient(test.err))
		})
	}
}

// TestSQLiteFailures provokes failures in SQLite itself. The Store has only one connection, so that a connection's
// settings stay in force.
func TestSQLiteFailures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		provoke   func(t *testing.T, s, other *Store) error
		message   string
		transient bool
	}{
		"busy":          {provokeBusy, "SQLITE_BUSY", true},
		"disk full":     {provokeFull, "disk is full", true},
		"closed":        {provokeClosed, "closed", true},
		"constraint":    {statement("INSERT INTO events (event_key) VALUES ('a')"), "NOT NULL", false},
		"wrong type":    {statement("UPDATE sessions SET turns = 'many'"), "cannot store TEXT value", false},
		"bad statement": {statement("SELEKT"), "syntax error", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "ops.db")
			s, other := single(t, path), single(t, path)
			record(t, s, "before")
			err := test.provoke(t, s, other)
			require.ErrorContains(t, err, test.message)
			require.Equal(t, test.transient, IsTransient(err), "%v", err)
			record(t, other, "after")
		})
	}
}

const (
	testPatience = 2 * time.Minute
	pollInterval = 10 * time.Millisecond
)

func single(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	s.db.SetMaxOpenConns(1)
	return s
}

func record(t *testing.T, s *Store, sessionID string) {
	t.Helper()
	_, err := s.OpenSession(t.Context(), session(sessionID), escalation.AdmissionRequest{}, lenient)
	require.NoError(t, err)
}

func session(sessionID string) escalation.Session {
	return escalation.Session{ChainID: "chain", SessionID: sessionID, Tier: escalation.TierObserve, StartedAt: time.UnixMilli(1)}
}

// lenient returns a policy without limits.
var lenient = escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)}

func provokeBusy(t *testing.T, s, other *Store) error {
	must(t, s, "PRAGMA busy_timeout = 10")
	tx, err := other.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback()) }()
	_, err = s.OpenSession(t.Context(), session("new"), escalation.AdmissionRequest{}, lenient)
	return err
}

func provokeFull(t *testing.T, s, _ *Store) error {
	must(t, s, "PRAGMA max_page_count = 1") // SQLite raises it to the present number of pages
	large := session("new")
	large.Error = strings.Repeat("x", 1<<20)
	_, err := s.OpenSession(t.Context(), large, escalation.AdmissionRequest{}, lenient)
	return err
}

func provokeClosed(t *testing.T, s, _ *Store) error {
	require.NoError(t, s.Close())
	_, err := s.OpenSession(t.Context(), session("new"), escalation.AdmissionRequest{}, lenient)
	return err
}

func statement(sql string) func(*testing.T, *Store, *Store) error {
	return func(t *testing.T, s, _ *Store) error {
		_, err := s.db.ExecContext(t.Context(), sql)
		return err
	}
}

func must(t *testing.T, s *Store, sql string) {
	t.Helper()
	_, err := s.db.ExecContext(t.Context(), sql)
	require.NoError(t, err)
}

// TestConnectionSettings checks the settings that SQLite keeps for each connection.
func TestConnectionSettings(t *testing.T) {
	t.Parallel()
	s := single(t, filepath.Join(t.TempDir(), "ops.db"))
	for pragma, want := range map[string]int64{"busy_timeout": busyTimeout.Milliseconds(), "foreign_keys": 1, "synchronous": 2} {
		var got int64
		require.NoError(t, s.db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
		require.Equal(t, want, got, pragma)
	}
}
