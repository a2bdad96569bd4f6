package store

import "errors"

var (
	// ErrNotFound says that the record that was asked for, or referred to, does not exist.
	ErrNotFound = errors.New("no such record")
	// ErrInvalid says that a record lacks something, or holds something that cannot be stored.
	ErrInvalid = errors.New("invalid record")
	// ErrConflict says that a record contradicts one that exists.
	ErrConflict = errors.New("conflicting record")
)

// IsTransient reports whether the call that returned err may succeed if it is repeated
// unchanged: the database was busy, its disk full, its connection lost, the
// context ended. It is false for nil, and for an error that lies in the request or in the
// data. An error of unknown origin counts as transient, because a retry is cheap and a
// lost record is not.
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

// errUnusable marks a database that Open refuses, whatever the underlying code says.
var errUnusable = errors.New("it cannot be used")

// missingReference reports whether err says that a row refers to one that does not exist.
func missingReference(err error) bool { return sqliteMissingReference(err) }
