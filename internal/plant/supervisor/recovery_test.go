package supervisor

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// unanswered is a client whose queries fail.
type unanswered struct {
	client.Client
	err error
}

func (u unanswered) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return nil, u.err
}

// TestRecoveryOfUnknownChains opens a session whose parent the records lack. If Temporal does not know the parent's
// chain either, the session has no parent. If nobody answers, the error is transient, so that Temporal repeats the
// activity.
func TestRecoveryOfUnknownChains(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	open := func(err error) (escalation.AdmissionResult, error) {
		opened, openErr := store.Open(t.Context(), filepath.Join(t.TempDir(), "ops.db"))
		require.NoError(t, openErr)
		t.Cleanup(func() { require.NoError(t, opened.Close()) })
		way := recovery{unanswered{err: err}, opened, slog.New(slog.DiscardHandler)}
		r := opened.With(store.Hooks{Recover: way.record})
		return r.OpenSession(t.Context(),
			escalation.Session{ChainID: "chain", SessionID: "new", ParentID: 7, Tier: escalation.TierObserve, StartedAt: now},
			escalation.AdmissionRequest{Previous: "lost", Parent: "elsewhere", ParentChain: "gone"},
			escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)})
	}
	opened, err := open(serviceerror.NewNotFound("no such workflow"))
	require.NoError(t, err)
	require.Equal(t, "new", opened.Session.SessionID)
	require.Zero(t, opened.Session.ParentID)

	_, err = open(serviceerror.NewUnavailable("away"))
	require.ErrorContains(t, err, "the records lack sessions of chain chain, and the chain cannot be queried for them")
	require.False(t, isPermanent(err))
}
