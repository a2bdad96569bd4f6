package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Recorder keeps the records of chains and conversations. Every method that writes is idempotent, because a retry of
// the activity repeats the call.
type Recorder interface { //nolint:interfacebloat // one database
	// OpenSession admits a session under policy and stores the session. If the session is refused, OpenSession stores
	// nothing. If a session with this SessionID is already stored, OpenSession returns the stored session unchanged.
	// The time of the decision is the session's StartedAt.
	OpenSession(ctx context.Context, session escalation.Session, request escalation.AdmissionRequest,
		policy escalation.Policy) (escalation.AdmissionResult, error)
	// Review returns the decision that OpenSession would make at the time request.At. It changes nothing.
	Review(ctx context.Context, request escalation.AdmissionRequest, policy escalation.Policy) (escalation.Admission,
		error)
	// Conversation returns the session of a conversation.
	Conversation(ctx context.Context, sessionID string) (escalation.Session, error)
	// CloseSession stores the result of a session. It also opens and resolves incidents.
	CloseSession(ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time) error
	// AppendEvents stores events. It skips events whose key is already stored.
	AppendEvents(ctx context.Context, events []escalation.Event) error
	// ReleaseServices unlocks the services of a chain, so that other chains can repair them.
	ReleaseServices(ctx context.Context, chainID string) error

	// KnownIncidents returns the selected incidents that are open, or were resolved at most escalation.IncidentMemory
	// before of.At.
	KnownIncidents(ctx context.Context, of escalation.KnownIncidents) ([]escalation.Incident, error)
	// ChainIncidents returns the incidents that a chain works on (own), and those on which other chains still work
	// although a session of the chain has resolved them (healed). Each incident lists the work of other chains only.
	ChainIncidents(ctx context.Context, chain escalation.ChainRun, sessionID string) (own,
		healed []escalation.Incident, err error)
	// GateNotes returns what a person needs to know at a gate after a session.
	GateNotes(ctx context.Context, of escalation.NotesRequest) (escalation.GateNotes, error)
	// RecordProgress stores the progress of a chain with its incidents.
	RecordProgress(ctx context.Context, chain escalation.ChainRun, progress escalation.ChainProgress) error

	// OpenTalk returns what is recorded of a conversation.
	OpenTalk(ctx context.Context, conversationID string) (escalation.TalkOpening, error)
	// AnswerSession returns the session that has answered a turn; nil if there is none.
	AnswerSession(ctx context.Context, conversationID string, turn int) (*escalation.Session, error)
	// Chain returns the sessions of a chain by sequence.
	Chain(ctx context.Context, chainID string) ([]escalation.Session, error)
	// AddMessage stores a message as the next turn. A stored message keeps its turn, and so does another one with the
	// same ID.
	AddMessage(
		ctx context.Context, conversationID string, message escalation.TalkMessage, after int, at time.Time,
	) (escalation.TalkStored, error)
	// EndTurn stores the end of a turn.
	EndTurn(ctx context.Context, conversationID string, turn int, end escalation.TalkEnd) error
}

// Records keeps the records of chains and conversations.
type Records struct {
	Store Recorder
	// Catalog holds the services that the operator has described; nil if there are none. A chain that began before a
	// service was renamed asks for it, and limits it, by its old name.
	Catalog *escalation.Catalog
	// IsPermanent reports whether an error of Store is permanent, so that a retry would fail, too. IsUnknown reports
	// whether an error means that the record does not exist.
	IsPermanent, IsUnknown func(error) bool
}

// OpenSessionInput holds a session that asks for admission, and the events that led to it.
type OpenSessionInput struct {
	Session escalation.Session          `json:"session"`
	Request escalation.AdmissionRequest `json:"request"`
	Policy  escalation.Policy           `json:"policy"`
	Events  []escalation.Event          `json:"events,omitempty"`
	// Closing holds the end of the previous session; nil if that end is already stored.
	Closing *CloseSessionInput `json:"closing,omitempty"`
}

// OpenSession admits a session and stores it, before the agent's process starts. If input.Closing is set, OpenSession
// first closes the previous session. It stores the events even if the session is refused. For a refused session, the
// result contains the chain's incidents after the end of the previous session.
func (r *Records) OpenSession(ctx context.Context, input OpenSessionInput) (escalation.AdmissionResult, error) {
	var closed escalation.IncidentBrief
	if input.Closing != nil {
		var err error
		if closed, err = r.CloseSession(ctx, *input.Closing); err != nil {
			return escalation.AdmissionResult{}, err
		}
	}
	input.Session.Scope = r.Catalog.CanonicalAll(input.Session.Scope)
	input.Request.Services = r.Catalog.CanonicalAll(input.Request.Services)
	input.Policy.Cooldowns = r.Catalog.Cooldowns(input.Policy.Cooldowns)
	opening, err := r.Store.OpenSession(ctx, input.Session, input.Request, input.Policy)
	if err != nil {
		return escalation.AdmissionResult{},
			r.translate(fmt.Errorf("open the record of session %s: %w", input.Session.SessionID, err))
	}
	opening.Healed = closed.Healed
	if opening.Refusal != nil {
		opening.Incidents = closed.Incidents
	}
	return opening, r.appendEvents(ctx, input.Session.ChainID, input.Session.FirstRunID, input.Events)
}

// ReviewInput describes a session that waits for admission.
type ReviewInput struct {
	Request escalation.AdmissionRequest `json:"request"`
	Policy  escalation.Policy           `json:"policy"`
}

// Review returns the admission that the session would get now.
func (r *Records) Review(ctx context.Context, input ReviewInput) (escalation.Admission, error) {
	input.Request.Services = r.Catalog.CanonicalAll(input.Request.Services)
	input.Policy.Cooldowns = r.Catalog.Cooldowns(input.Policy.Cooldowns)
	admission, err := r.Store.Review(ctx, input.Request, input.Policy)
	if err != nil {
		return escalation.Admission{}, r.translate(fmt.Errorf("look whether chain %s may go on: %w",
			input.Request.ChainID, err))
	}
	return admission, nil
}

// FindSessionResult is the record of a conversation; Found is false if there is no record.
type FindSessionResult struct {
	Found   bool               `json:"found"`
	Session escalation.Session `json:"session"`
}

// FindSession looks up the session of a conversation.
func (r *Records) FindSession(ctx context.Context, sessionID string) (FindSessionResult, error) {
	session, err := r.Store.Conversation(ctx, sessionID)
	switch {
	case err == nil:
		return FindSessionResult{Found: true, Session: session}, nil
	case r.isUnknown(err):
		return FindSessionResult{}, nil
	default:
		return FindSessionResult{}, r.translate(fmt.Errorf("look up session %s: %w", sessionID, err))
	}
}

// CloseSessionInput holds the result of a session, and the events of the decision on that session.
type CloseSessionInput struct {
	ChainID string `json:"chain_id"`
	// FirstRunID is the run ID with which the chain began.
	FirstRunID string             `json:"first_run_id,omitempty"`
	SessionID  string             `json:"session_id"`
	EndedAt    time.Time          `json:"ended_at"`
	Report     escalation.Report  `json:"report"`
	Events     []escalation.Event `json:"events,omitempty"`
	// Release unlocks the services of the chain, because the chain stops repairing for now or for good.
	Release bool `json:"release,omitempty"`
	// Progress describes the work of the chain on its incidents from now on; nil means unchanged.
	Progress *escalation.ChainProgress `json:"progress,omitempty"`
	// Notes asks for what a person needs to know at the gate that follows; nil if none does.
	Notes *escalation.NotesRequest `json:"notes,omitempty"`
}

// CloseSession stores the result of a session. It returns the chain's incidents, and the incidents that the session has
// resolved and on which other chains still work.
func (r *Records) CloseSession(ctx context.Context, input CloseSessionInput) (escalation.IncidentBrief, error) {
	var brief escalation.IncidentBrief
	if err := r.Store.CloseSession(ctx, input.SessionID, input.Report, input.EndedAt); err != nil {
		return brief, r.translate(fmt.Errorf("close the record of session %s: %w", input.SessionID, err))
	}
	err := r.RecordEvents(ctx, RecordEventsInput{
		ChainID: input.ChainID, FirstRunID: input.FirstRunID, Events: input.Events, Release: input.Release,
		Progress: input.Progress,
	})
	if err != nil {
		return brief, err
	}
	chain := escalation.ChainRun{ChainID: input.ChainID, FirstRunID: input.FirstRunID}
	if brief.Incidents, brief.Healed, err = r.Store.ChainIncidents(ctx, chain, input.SessionID); err != nil {
		return brief, r.translate(fmt.Errorf("look up the incidents of chain %s: %w", input.ChainID, err))
	}
	if input.Notes != nil {
		request := *input.Notes
		request.Services = r.Catalog.CanonicalAll(request.Services)
		request.Limits = r.Catalog.Cooldowns(request.Limits)
		notes, err := r.Store.GateNotes(ctx, request)
		if err != nil {
			return brief, r.translate(fmt.Errorf("look up what chain %s has tried: %w", input.ChainID, err))
		}
		brief.Notes = &notes
	}
	return brief, nil
}

// KnownIncidents returns the incidents with which a chain compares the faults that it has found.
func (r *Records) KnownIncidents(ctx context.Context, input escalation.KnownIncidents) ([]escalation.Incident, error) {
	input.Services = r.Catalog.CanonicalAll(input.Services)
	incidents, err := r.Store.KnownIncidents(ctx, input)
	if err != nil {
		return nil, r.translate(fmt.Errorf("look up the known incidents: %w", err))
	}
	return incidents, nil
}

// RecordEventsInput holds events of a chain that occur between two sessions.
type RecordEventsInput struct {
	ChainID string `json:"chain_id"`
	// FirstRunID is the run ID with which the chain began.
	FirstRunID string             `json:"first_run_id,omitempty"`
	Events     []escalation.Event `json:"events,omitempty"`
	// Release unlocks the services of the chain, because the chain stops repairing for now or for good.
	Release bool `json:"release,omitempty"`
	// Progress describes the work of the chain on its incidents from now on; nil means unchanged.
	Progress *escalation.ChainProgress `json:"progress,omitempty"`
}

// RecordEvents stores events and, if set, the progress of a chain. If input.Release is set, it also unlocks the
// services of the chain.
func (r *Records) RecordEvents(ctx context.Context, input RecordEventsInput) error {
	if input.Release {
		if err := r.Store.ReleaseServices(ctx, input.ChainID); err != nil {
			return r.translate(fmt.Errorf("release the services of chain %s: %w", input.ChainID, err))
		}
	}
	if input.Progress != nil {
		chain := escalation.ChainRun{ChainID: input.ChainID, FirstRunID: input.FirstRunID}
		if err := r.Store.RecordProgress(ctx, chain, *input.Progress); err != nil {
			return r.translate(fmt.Errorf("record what chain %s does about its incidents: %w", input.ChainID, err))
		}
	}
	return r.appendEvents(ctx, input.ChainID, input.FirstRunID, input.Events)
}

func (r *Records) appendEvents(ctx context.Context, chainID, firstRunID string, events []escalation.Event) error {
	events = slices.Clone(events)
	for i := range events {
		events[i].FirstRunID = firstRunID
	}
	if err := r.Store.AppendEvents(ctx, events); err != nil {
		return r.translate(fmt.Errorf("record events of chain %s: %w", chainID, err))
	}
	return nil
}

// WithdrawSession closes the record of a session that never began. If there is no such record, WithdrawSession only
// stores the events.
func (r *Records) WithdrawSession(ctx context.Context, input CloseSessionInput) error {
	err := r.Store.CloseSession(ctx, input.SessionID, input.Report, input.EndedAt)
	if err != nil && !r.isUnknown(err) {
		return r.translate(fmt.Errorf("withdraw the record of session %s: %w", input.SessionID, err))
	}
	return r.RecordEvents(ctx, RecordEventsInput{
		ChainID: input.ChainID, FirstRunID: input.FirstRunID, Events: input.Events, Release: input.Release,
	})
}

// translate makes a permanent error non-retryable. It returns any other error unchanged.
func (r *Records) translate(err error) error {
	if err != nil && r.IsPermanent != nil && r.IsPermanent(err) {
		return permanent(ErrorTypeRecords, err)
	}
	return err
}

// isUnknown reports whether an error means that the record does not exist.
func (r *Records) isUnknown(err error) bool { return r.IsUnknown != nil && r.IsUnknown(err) }
