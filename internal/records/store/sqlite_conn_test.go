package store

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// openOne opens a new database with a single connection, and returns that connection, too.
func openOne(t *testing.T) (*sql.DB, *sqliteConn) {
	t.Helper()
	db := sql.OpenDB(sqliteConnector{sqliteDSN(filepath.Join(t.TempDir(), "test.db"))})
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	pinned, err := db.Conn(t.Context())
	require.NoError(t, err)
	var conn *sqliteConn
	require.NoError(t, pinned.Raw(func(opened any) error {
		conn = opened.(*sqliteConn)
		return nil
	}))
	require.NoError(t, pinned.Close())
	return db, conn
}

const countingQuery = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) SELECT i FROM n"

// TestStatementsAreKept runs a query twice, and once more while its rows are open.
func TestStatementsAreKept(t *testing.T) {
	t.Parallel()
	db, conn := openOne(t)
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	count := func(to int, then func(i int)) (all []int) {
		rows, err := tx.QueryContext(t.Context(), countingQuery, to)
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		for rows.Next() {
			var i int
			require.NoError(t, rows.Scan(&i))
			all = append(all, i)
			then(i)
		}
		require.NoError(t, rows.Err())
		return all
	}
	nothing := func(int) {}
	require.Equal(t, []int{1, 2, 3}, count(3, nothing))
	first := conn.kept[countingQuery]
	require.NotNil(t, first)
	require.Equal(t, []int{1, 2, 3, 4}, count(4, func(i int) { require.Len(t, count(i, nothing), i) }))
	require.Equal(t, []int{1}, count(1, nothing))
	require.Len(t, conn.kept, 1)
	require.Same(t, first, conn.kept[countingQuery])
	require.NoError(t, tx.Rollback())
}

// TestStatementsFollowTheSchema changes a table after a statement was compiled.
func TestStatementsFollowTheSchema(t *testing.T) {
	t.Parallel()
	db, _ := openOne(t)
	run := func(query string, args ...any) {
		_, err := db.ExecContext(t.Context(), query, args...)
		require.NoError(t, err)
	}
	for i, definition := range []string{"(a INTEGER)", "(b TEXT, a INTEGER)"} {
		run("CREATE TABLE t " + definition)
		run("INSERT INTO t (a) VALUES ($1)", i)
		var found int
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT a FROM t WHERE a >= $1", 0).Scan(&found))
		require.Equal(t, i, found)
		run("DROP TABLE t")
		require.Error(t, db.QueryRowContext(t.Context(), "SELECT a FROM t WHERE a >= $1", 0).Scan(&found))
	}
}

// TestStatementsAreFew runs more queries than a connection keeps.
func TestStatementsAreFew(t *testing.T) {
	t.Parallel()
	db, conn := openOne(t)
	for i := range maxStatements + 10 {
		var found int
		require.NoError(t, db.QueryRowContext(t.Context(), fmt.Sprintf("SELECT %d + $1", i), 1).Scan(&found))
		require.Equal(t, i+1, found)
		require.LessOrEqual(t, len(conn.kept), maxStatements)
	}
	require.Len(t, conn.kept, 10)
}
