package activities_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// fakeRecorder fails every call with err, if it is set.
type fakeRecorder struct {
	activities.Recorder

	err    error
	events []escalation.Event
	closed []string
	// refuse is the reason why no session is admitted; empty if all are.
	refuse   string
	released []string
	// incidents and healed are the incidents of every chain.
	incidents, healed []escalation.Incident
	progress          []escalation.ChainProgress
	chains            []escalation.ChainRun
	known             map[string]escalation.Session
}

var _ activities.Recorder = (*fakeRecorder)(nil)

func (f *fakeRecorder) OpenSession(
	_ context.Context, session escalation.Session, request escalation.AdmissionRequest, policy escalation.Policy,
) (escalation.AdmissionResult, error) {
	session.ID, session.Sequence = 18, 1
	admission, err := f.Review(context.Background(), request, policy)
	if !admission.Granted {
		return escalation.AdmissionResult{Refusal: &admission}, err
	}
	return escalation.AdmissionResult{Session: session}, err
}

func (f *fakeRecorder) Review(context.Context, escalation.AdmissionRequest, escalation.Policy) (escalation.Admission, error) {
	return escalation.Admission{Granted: f.refuse == "", Reason: f.refuse}, f.err
}

func (f *fakeRecorder) Conversation(_ context.Context, sessionID string) (escalation.Session, error) {
	session, found := f.known[sessionID]
	if !found && f.err == nil {
		return session, errUnknown
	}
	return session, f.err
}

var errUnknown = errors.New("no such record")

func (f *fakeRecorder) ReleaseServices(_ context.Context, chainID string) error {
	f.released = append(f.released, chainID)
	return f.err
}

func (f *fakeRecorder) CloseSession(_ context.Context, sessionID string, _ escalation.Report, _ time.Time) error {
	f.closed = append(f.closed, sessionID)
	return f.err
}

func (f *fakeRecorder) KnownIncidents(context.Context, escalation.KnownIncidents) ([]escalation.Incident, error) {
	return f.incidents, f.err
}

func (f *fakeRecorder) GateNotes(_ context.Context, of escalation.NotesRequest) (escalation.GateNotes, error) {
	return escalation.GateNotes{DeniedCalls: []string{"denied to " + of.SessionID}, Denied: 1}, f.err
}

func (f *fakeRecorder) ChainIncidents(_ context.Context, chain escalation.ChainRun, _ string) (own, healed []escalation.Incident, err error) {
	f.chains = append(f.chains, chain)
	return f.incidents, f.healed, f.err
}

func (f *fakeRecorder) RecordProgress(_ context.Context, chain escalation.ChainRun, progress escalation.ChainProgress) error {
	f.chains = append(f.chains, chain)
	f.progress = append(f.progress, progress)
	return f.err
}

func (f *fakeRecorder) AppendEvents(_ context.Context, events []escalation.Event) error {
	f.events = append(f.events, events...)
	return f.err
}

func TestRecords(t *testing.T) {
	t.Parallel()
	store := &fakeRecorder{}
	records := &activities.Records{Store: store}
	event := escalation.Event{Key: "run/1"}

	opened, err := records.OpenSession(t.Context(), activities.OpenSessionInput{
		Session: escalation.Session{SessionID: ownID}, Events: []escalation.Event{event},
	})
	require.NoError(t, err)
	require.Equal(t, int64(18), opened.Session.ID)
	_, err = records.CloseSession(t.Context(), activities.CloseSessionInput{SessionID: ownID, Events: []escalation.Event{event}})
	require.NoError(t, err)
	require.NoError(t, records.RecordEvents(t.Context(), activities.RecordEventsInput{Events: []escalation.Event{event}}))
	require.Equal(t, []string{ownID}, store.closed)
	require.Empty(t, store.released)
	_, err = records.CloseSession(t.Context(), activities.CloseSessionInput{ChainID: "chain", SessionID: ownID, Release: true})
	require.NoError(t, err)
	require.NoError(t, records.RecordEvents(t.Context(), activities.RecordEventsInput{ChainID: "chain", Release: true}))
	require.Equal(t, []string{"chain", "chain"}, store.released)
	require.Equal(t, []escalation.Event{event, event, event}, store.events)
}

// TestOpenSessionClosesTheOneBefore checks that opening a session first records the end of the previous one, even if
// the new one is refused.
func TestOpenSessionClosesTheOneBefore(t *testing.T) {
	t.Parallel()
	closing := &activities.CloseSessionInput{SessionID: "before", Events: []escalation.Event{{Key: "run/1"}}}
	input := activities.OpenSessionInput{
		Session: escalation.Session{SessionID: "next"}, Events: []escalation.Event{{Key: "run/2"}}, Closing: closing,
	}
	for _, refusal := range []string{"", "a cooldown"} {
		store := &fakeRecorder{refuse: refusal}
		_, err := (&activities.Records{Store: store}).OpenSession(t.Context(), input)
		require.NoError(t, err)
		require.Equal(t, []string{"before"}, store.closed)
		require.Equal(t, []escalation.Event{{Key: "run/1"}, {Key: "run/2"}}, store.events)
	}
}

func TestRecordsOfARefusedSession(t *testing.T) {
	t.Parallel()
	store := &fakeRecorder{refuse: "all is spent"}
	records := &activities.Records{Store: store}
	opening, err := records.OpenSession(t.Context(), activities.OpenSessionInput{Events: []escalation.Event{{Key: "run/1"}}})
	require.NoError(t, err, "a refusal is a result")
	require.Equal(t, "all is spent", opening.Refusal.Reason)
	require.Len(t, store.events, 1, "what led to it is recorded all the same")
	admission, err := records.Review(t.Context(), activities.ReviewInput{})
	require.NoError(t, err)
	require.Equal(t, "all is spent", admission.Reason)
}

func TestFindSession(t *testing.T) {
	t.Parallel()
	records := &activities.Records{
		Store:     &fakeRecorder{known: map[string]escalation.Session{ownID: {ID: 7}}},
		IsUnknown: func(err error) bool { return errors.Is(err, errUnknown) },
	}
	result, err := records.FindSession(t.Context(), ownID)
	require.NoError(t, err)
	require.Equal(t, activities.FindSessionResult{Found: true, Session: escalation.Session{ID: 7}}, result)
	result, err = records.FindSession(t.Context(), "another")
	require.NoError(t, err)
	require.False(t, result.Found)
}

func TestRecordsErrors(t *testing.T) {
	t.Parallel()
	gone, refused := errors.New("the database is away"), errors.New("no such parent")
	for name, tt := range map[string]struct {
		err       error
		permanent bool
	}{"transient": {gone, false}, "permanent": {refused, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			records := &activities.Records{
				Store: &fakeRecorder{err: tt.err}, IsPermanent: func(err error) bool { return errors.Is(err, refused) },
			}
			_, openErr := records.OpenSession(t.Context(), activities.OpenSessionInput{})
			_, closeErr := records.CloseSession(t.Context(), activities.CloseSessionInput{})
			_, reviewErr := records.Review(t.Context(), activities.ReviewInput{})
			_, findErr := records.FindSession(t.Context(), ownID)
			releaseErr := records.RecordEvents(t.Context(), activities.RecordEventsInput{Release: true})
			_, incidentsErr := records.KnownIncidents(t.Context(), escalation.KnownIncidents{})
			progressErr := records.RecordEvents(t.Context(), activities.RecordEventsInput{Progress: &escalation.ChainProgress{}})
			for _, err := range []error{openErr, closeErr, reviewErr, findErr, releaseErr, incidentsErr, progressErr} {
				require.ErrorIs(t, err, tt.err)
				var application *temporal.ApplicationError
				isPermanent := errors.As(err, &application) && application.NonRetryable()
				require.Equal(t, tt.permanent, isPermanent)
			}
		})
	}
}

func TestWithdrawSession(t *testing.T) {
	t.Parallel()
	missing, gone := errors.New("no such record"), errors.New("the database is away")
	for name, tt := range map[string]struct{ closing, want error }{
		"opened": {nil, nil}, "never opened": {missing, nil}, "cannot be told": {gone, gone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &closingFails{err: tt.closing}
			records := &activities.Records{Store: store, IsUnknown: func(err error) bool { return errors.Is(err, missing) }}
			event := escalation.Event{Key: "run/1"}
			err := records.WithdrawSession(t.Context(), activities.CloseSessionInput{SessionID: ownID, Events: []escalation.Event{event}})
			require.ErrorIs(t, err, tt.want)
			require.Equal(t, []string{ownID}, store.closed)
			if tt.want == nil {
				require.Equal(t, []escalation.Event{event}, store.events, "the events are kept in any case")
			}
		})
	}
}

// closingFails is a recorder whose CloseSession fails.
type closingFails struct {
	fakeRecorder
	err error
}

func (c *closingFails) CloseSession(ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time) error {
	_ = c.fakeRecorder.CloseSession(ctx, sessionID, report, endedAt)
	return c.err
}

// TestRecordsOfIncidents checks that the end of a session records the chain's progress and returns the incidents, also
// if it is recorded with the next opening.
func TestRecordsOfIncidents(t *testing.T) {
	t.Parallel()
	own, healed := []escalation.Incident{{ID: "incident-1"}}, []escalation.Incident{{ID: "incident-2"}}
	store := &fakeRecorder{incidents: own, healed: healed}
	records := &activities.Records{Store: store}
	chain := escalation.ChainRun{ChainID: "chain", FirstRunID: "run-1"}
	closing := activities.CloseSessionInput{
		ChainID: chain.ChainID, FirstRunID: chain.FirstRunID, Progress: &escalation.ChainProgress{Status: escalation.ChainWaiting},
	}

	brief, err := records.CloseSession(t.Context(), closing)
	require.NoError(t, err)
	require.Equal(t, escalation.IncidentBrief{Incidents: own, Healed: healed}, brief)
	closing.Notes = &escalation.NotesRequest{SessionID: "s"}
	brief, err = records.CloseSession(t.Context(), closing)
	require.NoError(t, err)
	require.Equal(t, &escalation.GateNotes{DeniedCalls: []string{"denied to s"}, Denied: 1}, brief.Notes, "a gate follows")
	closing.Notes, store.progress, store.chains = nil, store.progress[:1], store.chains[:2]
	opening, err := records.OpenSession(t.Context(), activities.OpenSessionInput{Closing: &closing})
	require.NoError(t, err)
	require.Equal(t, healed, opening.Healed)
	store.refuse = "the service is busy"
	opening, err = records.OpenSession(t.Context(), activities.OpenSessionInput{Closing: &closing})
	require.NoError(t, err)
	require.Equal(t, own, opening.Incidents, "a chain that waits can be told of them")
	require.Equal(t, []escalation.ChainProgress{*closing.Progress, *closing.Progress, *closing.Progress}, store.progress)
	require.Equal(t, []escalation.ChainRun{chain, chain, chain, chain, chain, chain}, store.chains)

	known, err := records.KnownIncidents(t.Context(), escalation.KnownIncidents{Services: []string{"web"}})
	require.NoError(t, err)
	require.Equal(t, own, known)
}
