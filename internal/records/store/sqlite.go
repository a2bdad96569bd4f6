package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// busyTimeout limits the wait for writers in other processes, whose transactions take milliseconds. After the
	// timeout, the call fails with a transient error. SQLite ignores the context during the wait, so a cancelled call
	// can take as long as the timeout.
	busyTimeout = 10 * time.Second
	// maxConns limits the connections of one Store: one for the only writer that SQLite allows, and the remaining
	// connections for readers.
	maxConns = 4
)

// openSQLite opens the database in the file at path. If the file is missing, openSQLite creates it.
func openSQLite(ctx context.Context, path string) (*sql.DB, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the database %s: %w", path, err)
	}
	dir := filepath.Dir(absolute)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of the database %s: %w: make its parent writable or choose "+
			"another place",
			absolute, err)
	}
	unlock, err := lockDirectory(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return openLocked(ctx, absolute)
}

// openLocked opens the database. The caller must have locked the database's directory.
func openLocked(ctx context.Context, path string) (*sql.DB, error) {
	if err := createFile(path); err != nil {
		return nil, fmt.Errorf("create the database %s: %w: make its directory writable or choose another place", path,
			err)
	}
	db := connectSQLite(path, "")
	if err := prepareSQLite(ctx, db); err != nil {
		return nil, place(path).explain("open", errors.Join(explainSQLite(err), db.Close()))
	}
	return db, nil
}

// existingOnly is a parameter with which SQLite creates no file.
const existingOnly = "&mode=rw"

// connectSQLite returns the connections to the file at path.
func connectSQLite(path, parameters string) *sql.DB {
	db := sql.OpenDB(sqliteConnector{sqliteDSN(path) + parameters})
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns) // they keep their statements
	return db
}

// createFile creates an empty file with mode 0600. SQLite creates its other files with the same mode. If the file
// exists, createFile does not open the file. Opening and closing it would drop the locks that SQLite holds on the file
// for this process.
func createFile(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // the operator chooses the path
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// sqliteDSN returns the data source name of the file at path. Its settings apply to every connection: SQLite enforces
// foreign keys, and syncs each commit to disk. A write transaction takes the write lock at its beginning, so that
// another writer cannot make the transaction fail half-way.
func sqliteDSN(path string) string {
	query := url.Values{
		"_pragma": {
			fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
			"foreign_keys(on)",
			"synchronous(full)",
		},
		"_txlock": {"immediate"},
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

// prepareSQLite checks that the database is usable and belongs to this program. Then it migrates the database.
func prepareSQLite(ctx context.Context, db *sql.DB) error {
	if _, err := refuseForeign(ctx, db, sqliteDialect); err != nil {
		return err
	}
	if err := probeWrite(ctx, db); err != nil {
		return err
	}
	provider, err := migrator(db, sqliteDialect)
	if err != nil {
		return err
	}
	if _, err := upToDate(ctx, provider); err != nil {
		return err
	}
	// In WAL mode, readers do not wait for a writer, nor a writer for readers. SQLite stores this mode in the file.
	if _, err := db.ExecContext(ctx, "PRAGMA journal_mode = WAL"); err != nil {
		return fmt.Errorf("switch to a write-ahead log: %w", err)
	}
	return migrate(ctx, provider)
}

// checkSQLite checks that the database is usable, belongs to this program, and has the tables of this release.
func checkSQLite(ctx context.Context, db *sql.DB) error {
	ours, err := refuseForeign(ctx, db, sqliteDialect)
	if err == nil {
		err = probeWrite(ctx, db)
	}
	if err == nil {
		err = checkMigrated(ctx, db, sqliteDialect, ours)
	}
	return err
}

// probeWrite checks that the database is writable. It creates a table and rolls back. SQLite opens a read-only file
// without an error. Without this check, Open would succeed, and the first record would fail.
//
// probeWrite waits for no other writer. If another writer is active, the file is writable.
func probeWrite(ctx context.Context, db *sql.DB) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := setBusyTimeout(ctx, conn, 0); err != nil {
		return err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if sqliteCode(err) == sqlite3.SQLITE_BUSY {
		return setBusyTimeout(ctx, conn, busyTimeout)
	}
	if err != nil {
		return fmt.Errorf("begin to write: %w", err)
	}
	_, err = tx.ExecContext(ctx, "CREATE TABLE write_probe (id INTEGER)")
	if err = errors.Join(err, tx.Rollback()); err != nil {
		return fmt.Errorf("try to write: %w", err)
	}
	return setBusyTimeout(ctx, conn, busyTimeout)
}

// setBusyTimeout limits how long conn waits for other writers.
func setBusyTimeout(ctx context.Context, conn *sql.Conn, limit time.Duration) error {
	if _, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", limit.Milliseconds())); err != nil {
		return fmt.Errorf("set how long to wait for other writers: %w", err)
	}
	return nil
}

// explainSQLite adds advice for the operator to an error from opening a database.
func explainSQLite(err error) error {
	switch sqliteCode(err) {
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%w, because it is not a SQLite database or is damaged: %w: move it away or choose another "+
			"file",
			errUnusable, err)
	default:
		return err
	}
}

// isUnwritable reports whether SQLite cannot open its file for writing.
func isUnwritable(err error) bool {
	switch sqliteCode(err) {
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return true
	}
	return false
}

// sqliteCode returns SQLite's primary result code; SQLITE_OK if err does not come from SQLite.
func sqliteCode(err error) int {
	if failure, ok := errors.AsType[*sqlite.Error](err); ok {
		return failure.Code() & 0xff
	}
	return sqlite3.SQLITE_OK
}

// sqlitePermanent reports whether SQLite would return the same error on a retry. For other errors, a retry can succeed,
// because they depend on conditions that change: locks, disk, memory, permissions.
func sqlitePermanent(err error) bool {
	switch sqliteCode(err) {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_INTERNAL, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB,
		sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISUSE,
		sqlite3.SQLITE_RANGE, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_AUTH:
		return true
	default:
		return false
	}
}

func sqliteMissingReference(err error) bool {
	failure, ok := errors.AsType[*sqlite.Error](err)
	return ok && failure.Code() == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
}
