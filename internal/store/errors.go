package store

import "errors"

var (
	// ErrNotFound says that a record does not exist, or that a record refers to another record that does not exist.
	ErrNotFound = errors.New("no such record")
	// ErrInvalid says that a record lacks a required value, or has one that cannot be stored.
	ErrInvalid = errors.New("invalid record")
	// ErrConflict says that a record contradicts an existing record.
	ErrConflict = errors.New("conflicting record")
)

// IsTransient reports whether the same call may succeed later, for example because the database was busy, the disk
// full, the connection lost, or the context ended. It is false for nil, and for errors in the request or in the data.
// An unknown error counts as transient, because a retry is cheap and a lost record is not.
func IsTransient(err error) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrInvalid), errors.Is(err, ErrConflict), errors.Is(err, errUnusable):
		return false
	default:
		return !sqlitePermanent(err)
	}
}

// errUnusable marks a database that Open refuses. It is permanent, regardless of SQLite's error code.
var errUnusable = errors.New("it cannot be used")

// missingReference reports whether err is a violated foreign key: a row refers to a row that does not exist.
func missingReference(err error) bool { return sqliteMissingReference(err) }
