package operations

import (
	"errors"
	"fmt"
)

// Kind says what kind of problem an error is. A front end chooses its exit code or its status by the kind.
type Kind string

// The kinds.
const (
	KindInvalid  Kind = "invalid"   // the input is wrong, and nothing was changed
	KindNotFound Kind = "not_found" // the thing does not exist
	KindConflict Kind = "conflict"  // the thing is in another state than the caller expects, and nothing was changed
	KindFailure  Kind = "failure"   // something did not work
)

// kindError is an error with its kind.
type kindError struct {
	kind Kind
	err  error
}

func (e *kindError) Error() string { return e.err.Error() }
func (e *kindError) Unwrap() error { return e.err }

// WithKind gives err a kind, for a front end that gets errors of another one. If err is nil, WithKind returns nil.
func WithKind(kind Kind, err error) error { return withKind(kind, err) }

// withKind gives err a kind. If err is nil, withKind returns nil.
func withKind(kind Kind, err error) error {
	if err == nil {
		return nil
	}
	return &kindError{kind, err}
}

// Invalid marks err as a mistake in the caller's input. If err is nil, Invalid returns nil.
func Invalid(err error) error { return withKind(KindInvalid, err) }

// KindOf returns the kind of err; KindFailure if nothing has given it another one.
func KindOf(err error) Kind {
	if own, ok := errors.AsType[*kindError](err); ok {
		return own.kind
	}
	return KindFailure
}

// FieldError is a mistake in one field of the caller's input. Front ends name the field in their own way: the command
// line as a flag.
type FieldError struct {
	// Field is the name of the field in JSON.
	Field string
	// Problem says what is wrong with the field, and what to write instead. It follows the name of the field.
	Problem string
}

func (e *FieldError) Error() string { return e.Field + " " + e.Problem }

// invalidField returns an error of KindInvalid about a field.
func invalidField(field, problem string, args ...any) error {
	return Invalid(&FieldError{field, fmt.Sprintf(problem, args...)})
}
