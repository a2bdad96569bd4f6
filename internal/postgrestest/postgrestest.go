// Package postgrestest gives tests PostgreSQL databases.
//
// The first test that needs one starts a cluster of this process from the binaries of the machine: in a temporary directory, on a
// Unix socket, without syncs to disk. The cluster ends with the process, even if the process is killed, and its directory is
// removed. If the variable CLAUDEOPS_TEST_POSTGRES_URL names a server, the databases are created and dropped there instead.
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

// URLVariable names the server whose user may create databases. It has the form of a database's URL.
const URLVariable = "CLAUDEOPS_TEST_POSTGRES_URL"

// patience limits the start of a cluster, and every single statement. Both take a second at most on an idle machine.
const patience = 2 * time.Minute

var (
	shared = sync.OnceValues(func() (string, error) {
		if given := os.Getenv(URLVariable); given != "" {
			return given, nil
		}
		cluster, err := start()
		if err != nil {
			return "", err
		}
		return cluster.URL("postgres"), nil
	})
	databases atomic.Int64
)

// Database creates an empty database and returns its URL. Its encoding is UTF8 if none is given. Without PostgreSQL on this
// machine it skips the test; in CI it fails the test.
func Database(t testing.TB, encoding ...string) string {
	t.Helper()
	server, err := shared()
	if err != nil {
		missing(t, err)
	}
	name := fmt.Sprintf("claudeops_test_%d_%d", os.Getpid(), databases.Add(1))
	text := cmp.Or(strings.Join(encoding, ""), "UTF8")
	Exec(t, server, fmt.Sprintf("CREATE DATABASE %s ENCODING '%s' LOCALE 'C' TEMPLATE template0", name, text))
	if os.Getenv(URLVariable) != "" { // a database of a cluster of this process ends with the cluster
		t.Cleanup(func() { Exec(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	}
	parsed, err := url.Parse(server)
	require.NoError(t, err)
	parsed.Path = "/" + name
	return parsed.String()
}

// Query returns the first value that a query of the database of that URL selects.
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

// Exec executes a statement in the database of that URL.
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
