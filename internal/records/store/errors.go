package store

import "errors"

var (
	// ErrNotFound means that a record does not exist, or that a record refers to a missing record.
	ErrNotFound = errors.New("no such record")
	// ErrInvalid means that a record lacks a required value, or contains a value that cannot be stored.
	ErrInvalid = errors.New("invalid record")
	// ErrConflict means that a record contradicts an existing record.
	ErrConflict = errors.New("conflicting record")
	// ErrUnmigrated means that the tables of the database are missing, or those of an earlier release.
	ErrUnmigrated = errors.New("it has no tables of this release: start a worker, or run `claudeops db migrate`")
	// ErrForeign means that the records belong to another Temporal namespace.
	ErrForeign = errors.New("the records belong to another Temporal namespace")
)

// IsTransient reports whether the same call can succeed later. Examples are a busy database, a full disk, a lost
// connection and a context that has ended. For nil, and for errors in the request or in the data, it returns false. An
// unknown error counts as transient, because a retry costs little and a lost record costs much.
func IsTransient(err error) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrInvalid), errors.Is(err, ErrConflict),
		errors.Is(err, ErrForeign),
		errors.Is(err, errUnusable):
		return false
	default:
		return !sqlitePermanent(err) && !postgresPermanent(err)
	}
}

// errUnusable marks a database that Open refuses. The error is permanent, whatever error code the database has
// returned.
var errUnusable = errors.New("it cannot be used")

// missingReference reports whether err is a violated foreign key, which means that a row refers to a missing row.
func missingReference(err error) bool {
	return sqliteMissingReference(err) || postgresMissingReference(err)
}
