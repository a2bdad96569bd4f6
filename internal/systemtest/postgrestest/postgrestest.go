// Package postgrestest gives tests PostgreSQL databases.
//
// The first test that needs a database starts a cluster from the PostgreSQL binaries of this machine. The cluster uses
// a temporary directory and a Unix socket, and does not sync to disk. It ends with the test process, even if the
// process is killed. Then its directory is removed.
//
// If the variable CLAUDEOPS_TEST_POSTGRES_URL names a server, the tests create and drop their databases on that server
// instead.
package postgrestest

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/lib/pq" // registers the driver
	"github.com/stretchr/testify/require"
)

// URLVariable is the name of an environment variable. Its value is the URL of a PostgreSQL server, with a user who can
// create databases.
const URLVariable = "CLAUDEOPS_TEST_POSTGRES_URL"

// patience limits the start of a cluster, and every single statement. Both take a second at most on an idle machine.
const patience = 2 * time.Minute

var (
	shared = sync.OnceValues(func() (string, error) {
		if given := os.Getenv(URLVariable); given != "" {
			return given, nil
		}
		cluster, err := start(Options{})
		if err != nil {
			return "", err
		}
		return cluster.URL("postgres"), nil
	})
	databases atomic.Int64
)

// Database creates an empty database and returns its URL. The default encoding is UTF8. If this machine has no
// PostgreSQL, Database skips the test; in CI, it fails the test.
func Database(t testing.TB, encoding ...string) string {
	t.Helper()
	server, err := shared()
	if err != nil {
		missing(t, err)
	}
	name := fmt.Sprintf("claudeops_test_%d_%d", os.Getpid(), databases.Add(1))
	text := cmp.Or(strings.Join(encoding, ""), "UTF8")
	Exec(t, server, fmt.Sprintf("CREATE DATABASE %s ENCODING '%s' LOCALE 'C' TEMPLATE template0", name, text))
	if os.Getenv(URLVariable) != "" { // if this variable is unset, the database ends with the cluster of this process
		t.Cleanup(func() { Exec(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	}
	parsed, err := url.Parse(server)
	require.NoError(t, err)
	parsed.Path = "/" + name
	return parsed.String()
}

// Tools returns the directory of PostgreSQL's programs, such as pg_dump. Without PostgreSQL on this machine it skips
// the test; in CI it fails the test.
func Tools(t testing.TB) string {
	t.Helper()
	directory, err := binaries()
	if err != nil {
		missing(t, err)
	}
	return directory
}

// Query runs a query in the database with the given URL, and returns the first value.
func Query(t testing.TB, database, query string) (answer string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	db, err := sql.Open("postgres", database)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.QueryRowContext(ctx, query).Scan(&answer), query)
	return answer
}

// Exec executes a statement in the database with the given URL.
func Exec(t testing.TB, database, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	db, err := sql.Open("postgres", database)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.ExecContext(ctx, statement)
	require.NoError(t, err, statement)
}

func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("these tests need PostgreSQL: %v", err)
	}
	t.Skipf("needs PostgreSQL: %v", err)
}
