package store_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
)

// patience limits every wait of a test on a server.
const patience = 2 * time.Minute

// with returns the URL of a database with a parameter.
func with(t testing.TB, database, name, value string) string {
	t.Helper()
	parsed, err := url.Parse(database)
	require.NoError(t, err)
	values := parsed.Query()
	values.Set(name, value)
	parsed.RawQuery = values.Encode()
	return parsed.String()
}

func TestPostgresOpenAtOnce(t *testing.T) {
	t.Parallel()
	database := postgrestest.Database(t)
	ctx := bounded(t)
	var group errgroup.Group
	for range writers {
		group.Go(func() error {
			s, err := store.OpenPostgres(ctx, database, 2)
			if err != nil {
				return err
			}
			return s.Close()
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, "1", postgrestest.Query(t, database, "SELECT COUNT(*) FROM claudeops_schema_version WHERE version_id = 1"))
}

func TestPostgresOpenRefuses(t *testing.T) {
	t.Parallel()
	statement := func(text string) func(*testing.T) string {
		return func(t *testing.T) string {
			database := postgrestest.Database(t)
			postgrestest.Exec(t, database, text)
			return database
		}
	}
	for name, test := range map[string]struct {
		prepare   func(t *testing.T) (database string)
		message   string
		transient bool
	}{
		"another program's database": {statement("CREATE TABLE executions (id INTEGER)"), "belongs to another program", false},
		"a newer schema": {func(t *testing.T) string {
			database := postgrestest.Database(t)
			openURL(t, database)
			postgrestest.Exec(t, database, "INSERT INTO claudeops_schema_version (version_id, is_applied) VALUES (9000, true)")
			return database
		}, "version 9000 and this release knows versions up to", false},
		"commits that can be lost": {func(t *testing.T) string {
			return with(t, postgrestest.Database(t), "synchronous_commit", "off")
		}, "set synchronous_commit to on", false},
		"no schema": {func(t *testing.T) string {
			return with(t, postgrestest.Database(t), "search_path", "nowhere")
		}, "no schema of the search_path exists", false},
		"another encoding": {func(t *testing.T) string { return postgrestest.Database(t, "LATIN1") }, "create it with ENCODING 'UTF8'", false},
		"no database": {func(t *testing.T) string {
			return strings.Replace(postgrestest.Database(t), "/claudeops_test", "/never_created", 1)
		}, "create the database, or correct its name", true},
		"no TLS": {func(t *testing.T) string {
			return with(t, postgrestest.StartLine(t, postgrestest.Database(t)).URL(), "sslmode", "verify-full")
		}, "add sslmode=disable", true},
		"no server": {func(t *testing.T) string {
			line := postgrestest.StartLine(t, postgrestest.Database(t))
			line.Cut()
			return line.URL()
		}, "open the database postgres://127.0.0.1:", true},
		"no server of two": {func(t *testing.T) string {
			line := postgrestest.StartLine(t, postgrestest.Database(t))
			line.Cut()
			return with(t, line.URL(), "host", "127.0.0.1,127.0.0.1")
		}, "could not connect to any of the hosts: ", true},
		"a password that cannot be read": {func(*testing.T) string { return "postgres://u:hunter2%zz@db/x" }, "write special characters in the password as %XX", false},
		"a wrong parameter":              {func(*testing.T) string { return "postgres://u:hunter2@db/x?sslmode=tls" }, `wrong value for "sslmode"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := store.OpenPostgres(bounded(t), test.prepare(t), 2)
			require.ErrorContains(t, err, test.message)
			require.NotContains(t, err.Error(), "\n")
			require.NotContains(t, err.Error(), "hunter2")
			require.Equal(t, test.transient, store.IsTransient(err))
		})
	}
}

// TestPostgresOpenAsUser opens a database as a user without the right to create tables. This must succeed only after
// the owner has migrated the schema.
func TestPostgresOpenAsUser(t *testing.T) {
	t.Parallel()
	database := postgrestest.Database(t)
	user := postgrestest.Query(t, database, "SELECT 'user_of_' || current_database()")
	postgrestest.Exec(t, database, "CREATE ROLE "+user+" LOGIN")
	t.Cleanup(func() {
		postgrestest.Exec(t, database, "DROP OWNED BY "+user)
		postgrestest.Exec(t, database, "DROP ROLE "+user)
	})
	asUser := with(t, database, "user", user)
	_, err := store.OpenPostgres(bounded(t), asUser, 2)
	require.ErrorContains(t, err, "grant the user CREATE on the schema")
	openURL(t, database)
	postgrestest.Exec(t, database, "GRANT SELECT ON claudeops_schema_version TO "+user)
	postgrestest.Exec(t, database, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO "+user)
	s := openURL(t, asUser)
	mustOpen(t, s, opening("chain", "session", 0))
}

// TestPostgresFailover crashes the primary server, and promotes its standby. A Store with the addresses of both servers
// continues.
func TestPostgresFailover(t *testing.T) {
	t.Parallel()
	primary := postgrestest.Start(t)
	s := openURL(t, primary.URL("postgres"))
	mustOpen(t, s, opening("chain", "first", 0))
	standby := primary.StartStandby(t)
	both := openURL(t, primary.URL("postgres", standby))
	mustOpen(t, both, opening("chain", "second", 0))
	replica := openURL(t, standby.URL("postgres"))
	require.Eventually(t, func() bool {
		_, err := replica.BySessionID(bounded(t), "second")
		return err == nil
	}, patience, 10*time.Millisecond)
	_, err := openSession(bounded(t), replica, opening("chain", "third", 0))
	require.ErrorContains(t, err, "read-write mode during recovery")
	require.True(t, store.IsTransient(err))
	require.ErrorContains(t, replica.CheckWritable(bounded(t)), ":5432/postgres takes no writes, because the server is a standby or read-only: "+
		"let CLAUDEOPS_DATABASE_URL name the primary, or all servers separated by commas")
	require.NoError(t, s.CheckWritable(bounded(t)))
	list := openURL(t, standby.URL("postgres", primary)) // the standby first
	require.NoError(t, list.CheckWritable(bounded(t)), "of several servers it is the primary")

	primary.Crash(t)
	_, err = openSession(bounded(t), both, opening("chain", "third", 0))
	require.Error(t, err)
	require.True(t, store.IsTransient(err), "%v", err)
	_, err = store.OpenPostgres(bounded(t), primary.URL("postgres", standby), 2)
	require.ErrorContains(t, err, ":5432/postgres takes no writes, because each of its servers that answers is a standby or read-only "+
		"(default_transaction_read_only): promote one, or let CLAUDEOPS_DATABASE_URL name the primary")
	require.True(t, store.IsTransient(err), "%v", err)
	postgrestest.Exec(t, standby.URL("postgres"), "SELECT pg_promote()")
	for _, s := range []*store.Store{both, replica} {
		mustOpen(t, s, opening("chain", "third", 0))
		chain, err := s.Chain(bounded(t), "chain")
		require.NoError(t, err)
		require.Len(t, chain, 3)
	}
}

// TestPostgresReadOnlyByDefault opens a database whose transactions are read-only by default. This program's
// transactions say that they write, so the setting keeps nothing from being recorded. A standby without the schema is
// refused by name.
func TestPostgresReadOnlyByDefault(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.StartWith(t, postgrestest.Options{Settings: []string{"default_transaction_read_only=on"}})
	standby := cluster.StartStandby(t)
	_, err := store.OpenPostgres(bounded(t), standby.URL("postgres"), 2)
	require.ErrorContains(t, err, ":5432/postgres takes no writes, because the server is a standby or read-only")
	s := openURL(t, cluster.URL("postgres"))
	require.NoError(t, s.CheckWritable(bounded(t)))
	mustOpen(t, s, opening("chain", "first", 0))
	_, err = store.OpenPostgres(bounded(t), cluster.URL("postgres", standby), 2)
	require.ErrorContains(t, err, "each of its servers that answers is a standby or read-only (default_transaction_read_only)")
}

// TestPostgresRestarts ends all connections of a Store, and then crashes the server.
func TestPostgresRestarts(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	database := cluster.URL("postgres")
	s := openURL(t, database)
	mustOpen(t, s, opening("chain", "first", 0))
	for range 3 {
		postgrestest.Exec(t, database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'claudeops'")
		_, err := s.BySessionID(bounded(t), "first")
		require.NoError(t, err, "an idle connection that died is replaced")
	}
	postgrestest.Exec(t, database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'claudeops'")
	mustOpen(t, s, opening("chain", "second", 0))

	cluster.Crash(t)
	_, err := openSession(bounded(t), s, opening("chain", "third", 0))
	require.Error(t, err)
	require.True(t, store.IsTransient(err), "%v", err)
	cluster.Restart(t)
	mustOpen(t, s, opening("chain", "third", 0))
	chain, err := s.Chain(bounded(t), "chain")
	require.NoError(t, err)
	require.Len(t, chain, 3)
}
