package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// Store is an open database of records. A Store is safe for concurrent use.
type Store struct {
	db      *sql.DB
	dialect dialect
	place   place
	hooks   Hooks
	// writing holds one element while this Store writes. Other writers wait for this channel, and stop as soon as
	// their context ends. If they waited for SQLite's lock instead, they would poll, and a writer could starve. If
	// they waited for PostgreSQL's lock, each would take a connection.
	writing chan struct{}
}

// Open opens the SQLite database in the file at path, and migrates its schema. Workers and `claudeops db` call it.
//
// Open creates a missing file with mode 0600, and a missing directory with mode 0700. An existing file or directory
// keeps its mode. Open refuses a file that is not a database of this program, and a file that a newer release has
// migrated. A refused file stays unchanged.
func Open(ctx context.Context, path string) (*Store, error) {
	db, err := openSQLite(ctx, path)
	if err != nil {
		return nil, err
	}
	return newSQLite(db, path), nil
}

// OpenExisting opens the SQLite database in the file at path, and neither creates nor migrates it. If its tables are
// missing or those of an earlier release, the error is ErrUnmigrated.
func OpenExisting(ctx context.Context, path string) (*Store, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the database %s: %w", path, err)
	}
	db := connectSQLite(absolute, existingOnly)
	if err := checkSQLite(ctx, db); err != nil {
		return nil, place(path).explain("open", errors.Join(explainSQLite(err), db.Close()))
	}
	return newSQLite(db, path), nil
}

func newSQLite(db *sql.DB, path string) *Store {
	return &Store{db: db, dialect: sqliteDialect, place: place(path), writing: make(chan struct{}, 1)}
}

// Close closes the database. Methods that are called later fail.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close the database: %w", err)
	}
	return nil
}

// querier runs queries, inside or outside of a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// write runs fn in a transaction, and commits the transaction if fn succeeds. Write transactions never overlap, so the
// values that fn reads are still true when fn writes.
func (s *Store) write(ctx context.Context, fn func(tx *sql.Tx) error) error {
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return fmt.Errorf("wait for other writers: %w", ctx.Err())
	}
	return s.inTransaction(ctx, s.dialect.writing, func(tx *sql.Tx) error {
		if s.dialect.lock != "" {
			if _, err := tx.ExecContext(ctx, s.dialect.lock); err != nil {
				return fmt.Errorf("wait for other writers: %w", err)
			}
		}
		return fn(tx)
	})
}

// read runs fn in a read-only transaction, so that fn reads one consistent state.
func (s *Store) read(ctx context.Context, fn func(tx *sql.Tx) error) error {
	return s.inTransaction(ctx, s.dialect.reading, fn)
}

func (s *Store) inTransaction(ctx context.Context, options *sql.TxOptions, fn func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, options)
	if err != nil {
		return s.place.explain("begin a transaction in", err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if err := fn(tx); err != nil {
		if isStandby(err) || isUnwritable(err) {
			err = s.place.explain("write to", err)
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// canonical returns v after encoding it to JSON and decoding it. So a value compares as equal to its stored copy,
// because both have only storable text and nil for an empty list. If JSON cannot express a value, such as an infinite
// cost, the error is ErrInvalid.
func canonical[T any](v T) (T, error) {
	var out T
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(withoutNUL(text), &out)
	}
	if err != nil {
		return out, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return out, nil
}

// escapes matches escaped NULs in JSON. It also matches escaped backslashes, so that the second backslash of \\u0000
// does not look like the beginning of an escaped NUL.
var escapes = regexp.MustCompile(`\\\\|\\u0000`)

// withoutNUL replaces the character NUL in the strings of JSON by U+FFFD, because PostgreSQL cannot store a NUL.
func withoutNUL(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\u0000`)) {
		return text
	}
	return escapes.ReplaceAllFunc(text, func(found []byte) []byte {
		if found[1] == '\\' {
			return found
		}
		return []byte(`\ufffd`)
	})
}

// storable returns text as valid UTF-8 without the character NUL.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
