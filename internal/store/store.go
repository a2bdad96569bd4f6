package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
)

// Store is an open database of records. It is safe for concurrent use.
type Store struct {
	db *sql.DB
	// writing is held by the one writer of this Store. SQLite lets those who wait for its lock poll,
	// and the unlucky one starve; here they queue, and see at once that their context ends.
	writing chan struct{}
}

// Open opens the SQLite database in the file at path, and brings its schema up to date.
//
// A missing file is created with mode 0600, a missing directory with mode 0700; what
// exists keeps its mode. A file that is not a database of this program, or that a newer
// release has migrated, is refused and left as it was.
func Open(ctx context.Context, path string) (*Store, error) {
	db, err := openSQLite(ctx, path)
	if err != nil {
		return nil, err
	}
	return &Store{db: db, writing: make(chan struct{}, 1)}, nil
}

// Close ends the use of the database. Methods that are called later fail.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close the database: %w", err)
	}
	return nil
}

// querier reads, inside a transaction or outside of one.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// write runs fn in a transaction that no other writer's overlaps, and commits it if fn
// succeeds. What fn reads therefore still holds when it writes.
func (s *Store) write(ctx context.Context, fn func(tx *sql.Tx) error) error {
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return fmt.Errorf("wait for other writers: %w", ctx.Err())
	}
	return s.inTransaction(ctx, nil, fn)
}

// read runs fn in a transaction, so that all that fn reads was so at one moment.
func (s *Store) read(ctx context.Context, fn func(tx *sql.Tx) error) error {
	return s.inTransaction(ctx, &sql.TxOptions{ReadOnly: true}, fn)
}

func (s *Store) inTransaction(ctx context.Context, options *sql.TxOptions, fn func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, options)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit this does nothing
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// canonical returns v as it comes back from JSON, so that a value and its stored copy
// compare as equal: text is valid UTF-8 and an empty list is nil. What JSON
// cannot say, such as a cost that is not a number, is ErrInvalid.
func canonical[T any](v T) (T, error) {
	var out T
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return out, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return out, nil
}
