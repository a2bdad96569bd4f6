package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Recorder keeps records. Every method is idempotent: a retry of the activity repeats
// the call and must change nothing more.
type Recorder interface {
	// OpenSession stores a session that is about to start and returns it with its ID and
	// Sequence. A session that is already stored, by SessionID, is returned as it is.
	OpenSession(ctx context.Context, session escalation.Session) (escalation.Session, error)
	// CloseSession stores what the session came to.
	CloseSession(ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time) error
	// AppendEvents stores events; those whose key is known are left out.
	AppendEvents(ctx context.Context, events []escalation.Event) error
}

// Records keeps the records of chains.
type Records struct {
	Store Recorder
	// IsPermanent reports whether an error of Store will not go away by itself, and IsUnknown
	// whether it says that there is no such record.
	IsPermanent, IsUnknown func(error) bool
}

// OpenSessionInput is a session that is about to start, and the events that led to it.
type OpenSessionInput struct {
	Session escalation.Session `json:"session"`
	Events  []escalation.Event `json:"events,omitempty"`
}

// OpenSessionResult is the session as stored.
type OpenSessionResult struct {
	Session escalation.Session `json:"session"`
}

// OpenSession stores a session before its process starts.
func (r *Records) OpenSession(ctx context.Context, input OpenSessionInput) (OpenSessionResult, error) {
	session, err := r.Store.OpenSession(ctx, input.Session)
	if err != nil {
		return OpenSessionResult{}, r.translate(fmt.Errorf("open the record of session %s: %w", input.Session.SessionID, err))
	}
	if err := r.Store.AppendEvents(ctx, input.Events); err != nil {
		return OpenSessionResult{}, r.translate(fmt.Errorf("record events of chain %s: %w", input.Session.ChainID, err))
	}
	return OpenSessionResult{Session: session}, nil
}

// CloseSessionInput is what a session came to, and what was decided on it.
type CloseSessionInput struct {
	SessionID string             `json:"session_id"`
	EndedAt   time.Time          `json:"ended_at"`
	Report    escalation.Report  `json:"report"`
	Events    []escalation.Event `json:"events,omitempty"`
}

// CloseSession stores how a session ended.
func (r *Records) CloseSession(ctx context.Context, input CloseSessionInput) error {
	if err := r.Store.CloseSession(ctx, input.SessionID, input.Report, input.EndedAt); err != nil {
		return r.translate(fmt.Errorf("close the record of session %s: %w", input.SessionID, err))
	}
	if err := r.Store.AppendEvents(ctx, input.Events); err != nil {
		return r.translate(fmt.Errorf("record events of session %s: %w", input.SessionID, err))
	}
	return nil
}

// WithdrawSession closes the record of a session that never began, if there is one, and stores the
// events in any case.
func (r *Records) WithdrawSession(ctx context.Context, input CloseSessionInput) error {
	err := r.Store.CloseSession(ctx, input.SessionID, input.Report, input.EndedAt)
	if err != nil && (r.IsUnknown == nil || !r.IsUnknown(err)) {
		return r.translate(fmt.Errorf("withdraw the record of session %s: %w", input.SessionID, err))
	}
	if err := r.Store.AppendEvents(ctx, input.Events); err != nil {
		return r.translate(fmt.Errorf("record events of session %s: %w", input.SessionID, err))
	}
	return nil
}

// RecordEventsInput is events that go with no record.
type RecordEventsInput struct {
	Events []escalation.Event `json:"events"`
}

// RecordEvents stores events that no session's record takes along.
func (r *Records) RecordEvents(ctx context.Context, input RecordEventsInput) error {
	if err := r.Store.AppendEvents(ctx, input.Events); err != nil {
		return r.translate(fmt.Errorf("record events: %w", err))
	}
	return nil
}

// translate decides whether Temporal should try the activity again.
func (r *Records) translate(err error) error {
	if r.IsPermanent != nil && r.IsPermanent(err) {
		return permanent(ErrorTypeRecords, err)
	}
	return err
}
