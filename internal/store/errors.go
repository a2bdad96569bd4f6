package store

import "errors"

var (
	// ErrNotFound says that a record, or one that it refers to, does not exist.
	ErrNotFound = errors.New("no such record")
	// ErrInvalid says that a record lacks a required value, or has one that cannot be stored.
	ErrInvalid = errors.New("invalid record")
	// ErrConflict says that a record contradicts one that exists.
	ErrConflict = errors.New("conflicting record")
)

// IsTransient reports whether the same call may succeed later: the database was busy, the disk full, the connection lost,
// or the context ended. It is false for nil, and for errors in the request or in the data. An unknown error counts as
// transient, because a retry is cheap and a lost record is not.
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

// errUnusable marks a database that Open refuses. It is permanent, whatever SQLite's code is.
var errUnusable = errors.New("it cannot be used")

// missingReference reports whether err says that a row refers to one that does not exist.
func missingReference(err error) bool { return sqliteMissingReference(err) }
