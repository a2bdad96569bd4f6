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
	err    error
	events []escalation.Event
	closed []string
}

var _ activities.Recorder = (*fakeRecorder)(nil)

func (f *fakeRecorder) OpenSession(_ context.Context, session escalation.Session) (escalation.Session, error) {
	session.ID, session.Sequence = 18, 1
	return session, f.err
}

func (f *fakeRecorder) CloseSession(_ context.Context, sessionID string, _ escalation.Report, _ time.Time) error {
	f.closed = append(f.closed, sessionID)
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
	require.NoError(t, records.CloseSession(t.Context(), activities.CloseSessionInput{
		SessionID: ownID, Events: []escalation.Event{event},
	}))
	require.NoError(t, records.RecordEvents(t.Context(), activities.RecordEventsInput{Events: []escalation.Event{event}}))
	require.Equal(t, []string{ownID}, store.closed)
	require.Equal(t, []escalation.Event{event, event, event}, store.events)
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
			closeErr := records.CloseSession(t.Context(), activities.CloseSessionInput{})
			eventErr := records.RecordEvents(t.Context(), activities.RecordEventsInput{})
			for _, err := range []error{openErr, closeErr, eventErr} {
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

// closingFails is a recorder that cannot close.
type closingFails struct {
	fakeRecorder
	err error
}

func (c *closingFails) CloseSession(ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time) error {
	_ = c.fakeRecorder.CloseSession(ctx, sessionID, report, endedAt)
	return c.err
}
