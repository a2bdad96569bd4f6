package store

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
)

// oldDatabase is a database with the schema of an earlier release.
type oldDatabase struct {
	t  *testing.T
	db *sql.DB
	// open opens the database with this release, which migrates it.
	open func() *Store
	// read opens the database for a reader.
	read func() (*Store, error)
}

// oldDatabases returns an empty database of each kind with an earlier version of the schema.
func oldDatabases(t *testing.T, version int64) map[string]oldDatabase {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ops.db")
	url := postgrestest.Database(t)
	config, err := postgresConfig(url)
	require.NoError(t, err)
	old := map[string]oldDatabase{
		"SQLite": {
			t, sql.OpenDB(sqliteConnector{sqliteDSN(file)}), func() *Store { return single(t, file) },
			func() (*Store, error) { return OpenExisting(t.Context(), file) },
		},
		"PostgreSQL": {
			t, sql.OpenDB(connector{config, answerTimeout}), func() *Store { return openPostgres(t, url) },
			func() (*Store, error) { return OpenExistingPostgres(t.Context(), url, 2) },
		},
	}
	for name, dialect := range map[string]dialect{"SQLite": sqliteDialect, "PostgreSQL": postgresDialect} {
		provider, err := migrator(old[name].db, dialect)
		require.NoError(t, err)
		_, err = provider.UpTo(t.Context(), version)
		require.NoError(t, err)
	}
	return old
}

// nullable lists the columns that a row of insert leaves out.
var nullable = []string{
	"id", "parent_session_id", "scope", "ended_at", "worktree", "verdict", "limited_until", "after_turn", "seen_at", "proposals",
	"memories", "report", "until", "incidents", "jumped_at", "returned_at", "worse_at", "resolved_at", "returns",
}

// columns returns the types of the columns of a table.
func (o oldDatabase) columns(table string) []*sql.ColumnType {
	o.t.Helper()
	rows, err := o.db.QueryContext(o.t.Context(), "SELECT * FROM "+table+" LIMIT 1") //nolint:gosec // one of our tables
	require.NoError(o.t, err)
	defer func() { require.NoError(o.t, rows.Close()) }()
	types, err := rows.ColumnTypes()
	require.NoError(o.t, err)
	require.NoError(o.t, rows.Err())
	return types
}

// insert inserts a row. Columns that are not given have the zero value of their type.
func (o oldDatabase) insert(table string, given map[string]any) {
	o.t.Helper()
	var names, values []string
	for _, column := range o.columns(table) {
		value, has := given[column.Name()]
		switch kind := column.DatabaseTypeName(); {
		case has:
		case slices.Contains(nullable, column.Name()):
			continue
		case column.Name() == "services":
			value = "[]"
		case kind == "TEXT":
			value = ""
		case kind == "BOOL":
			value = false
		default:
			value = 0
		}
		names = append(names, column.Name())
		if text, ok := value.(string); ok {
			value = "'" + text + "'"
		}
		values = append(values, fmt.Sprint(value))
	}
	_, err := o.db.ExecContext(o.t.Context(), fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, strings.Join(names, ", "), strings.Join(values, ", ")))
	require.NoError(o.t, err)
}

// TestReadersMigrateNothing opens databases of an earlier release, which only workers migrate.
func TestReadersMigrateNothing(t *testing.T) {
	t.Parallel()
	for name, old := range oldDatabases(t, 4) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, old.db.Close())
			_, err := old.read()
			require.ErrorIs(t, err, ErrUnmigrated)
			require.True(t, IsTransient(err))
			_, err = old.read()
			require.ErrorIs(t, err, ErrUnmigrated, "the first one has migrated nothing")
			old.open()
			migrated, err := old.read()
			require.NoError(t, err)
			require.NoError(t, migrated.Close())
		})
	}
}

// TestNamespacesBecomeOne migrates databases that workers of two namespaces have shared, and in which they had chains,
// conversations and notifications of the same IDs.
func TestNamespacesBecomeOne(t *testing.T) {
	t.Parallel()
	for name, old := range oldDatabases(t, 4) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old.t = t
			for i, one := range []struct {
				namespace, session string
				parent             any
			}{{"a", "a 1", nil}, {"b", "b 1", nil}, {"a", "a 2", 1}, {"b", "b 2", 2}, {"b", "gone", nil}} {
				row := map[string]any{
					"chain_id": "nightly", "namespace_id": one.namespace, "sequence": i/2 + 1, "session_id": one.session, "tier": 1,
					"status": "completed", "first_run_id": "run of " + one.namespace, "cost_usd": 0.5, "ended_at": 1,
				}
				if one.parent != nil {
					row["parent_session_id"] = one.parent
				}
				old.insert("sessions", row)
			}
			_, err := old.db.ExecContext(t.Context(), "DELETE FROM sessions WHERE id = 5")
			require.NoError(t, err)
			old.insert("sessions", map[string]any{"chain_id": "later", "namespace_id": "a", "sequence": 7, "session_id": "a 3", "tier": 1})
			old.insert("ledger", map[string]any{"service": "web", "service_key": "web", "kind": "restart", "position": 1, "session_id": "a 2"})
			old.insert("replaced_reports", map[string]any{"session_id": "b 2", "cost_usd": 0.25, "report": "{}", "ended_at": 1})
			old.insert("incidents", map[string]any{"resolved_session": "", "kind": "down"})
			for _, namespace := range []string{"a", "b"} {
				old.insert("events", map[string]any{"event_key": namespace, "chain_id": "nightly", "namespace_id": namespace})
				old.insert("notifications", map[string]any{"notification_key": "key", "namespace_id": namespace, "target": "ntfy"})
				old.insert("clocks", map[string]any{"namespace_id": namespace, "trusted_at": len(namespace)})
				old.insert("incident_chains", map[string]any{
					"incident_id": 1, "chain_id": "nightly", "namespace_id": namespace, "first_run_id": "run of " + namespace, "status": "ended",
				})
				old.insert("talk_turns", map[string]any{
					"conversation_id": "conversation-ada", "namespace_id": namespace, "turn": 1, "message_id": "m-1", "message": "from " + namespace,
				})
				old.insert("talk_confirmations", map[string]any{
					"conversation_id": "conversation-ada", "namespace_id": namespace, "turn": 1, "proposal": 1, "actor": namespace,
				})
			}
			day := (24 * time.Hour).Milliseconds()
			for i, namespace := range []string{"gone", "a", "b"} {
				old.insert("namespaces", map[string]any{"id": namespace, "name": "default", "host": "h", "seen_at": int64(i+7)/8*4*day + int64(i)})
			}
			require.NoError(t, old.db.Close())

			s := old.open()
			sessions, err := s.Chain(t.Context(), "nightly")
			require.NoError(t, err)
			require.Len(t, sessions, 4)
			for i, want := range []string{"a 1", "b 1", "a 2", "b 2"} {
				require.Equal(t, want, sessions[i].SessionID)
				require.Equal(t, i+1, sessions[i].Sequence)
				require.Equal(t, max(0, i-1), int(sessions[i].ParentID))
			}
			next, err := s.OpenSession(t.Context(), escalation.Session{
				ChainID: "later", SessionID: "next", Tier: escalation.TierObserve, StartedAt: time.UnixMilli(1), ParentID: sessions[3].ID,
			}, escalation.AdmissionRequest{}, escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)})
			require.NoError(t, err)
			require.Equal(t, 8, next.Session.Sequence, "a chain of one namespace keeps its numbers")
			require.Greater(t, next.Session.ID, int64(5))
			turn, err := s.TalkTurn(t.Context(), "conversation-ada", 1)
			require.NoError(t, err)
			require.Equal(t, "from b", turn.Text)
			require.Len(t, turn.Confirmed, 1)
			require.Equal(t, map[string]int64{
				"sessions": 6, "ledger": 1, "replaced_reports": 1, "events": 2, "notifications": 1, "clock": 1, "incident_chains": 2, "namespaces": 2,
			}, CountRows(t, s, "sessions", "ledger", "replaced_reports", "events", "notifications", "clock", "incident_chains", "namespaces"))

			now := time.UnixMilli(5 * day)
			err = s.Claim(t.Context(), Namespace{ID: "a", Name: "default"}, now)
			require.ErrorIs(t, err, ErrForeign)
			require.ErrorContains(t, err, `"default" (a) and "default" (b): stop them all, run `+"`claudeops db release`")
			require.NoError(t, s.Release(t.Context(), now))
			require.NoError(t, s.Claim(t.Context(), Namespace{ID: "a", Name: "default"}, now))
		})
	}
}
