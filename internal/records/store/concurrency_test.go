package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

const (
	writers          = 8
	sessionsByWriter = 10
)

func testConcurrentSessions(t *testing.T, database backend) {
	open := database(t)
	stores := []*store.Store{open(), open()}
	group, ctx := errgroup.WithContext(bounded(t))
	for writer := range writers {
		group.Go(func() error { return writeChain(ctx, stores[writer%len(stores)], writer) })
	}
	require.NoError(t, group.Wait())

	chain, err := stores[0].Chain(bounded(t), "shared")
	require.NoError(t, err)
	require.Len(t, chain, writers*sessionsByWriter)
	for i, session := range chain {
		require.Equal(t, i+1, session.Sequence)
		require.Equal(t, escalation.SessionCompleted, session.Status)
	}
	events, err := stores[1].Events(bounded(t), "shared")
	require.NoError(t, err)
	require.Len(t, events, writers*sessionsByWriter)
}

// writeChain records sessions in the chain "shared". The parent of each session is the previous session of this writer.
func writeChain(ctx context.Context, s *store.Store, writer int) error {
	var parent int64
	for i := range sessionsByWriter {
		name := fmt.Sprintf("writer %d session %d", writer, i)
		session, err := openSession(ctx, s, opening("shared", name, parent))
		if err != nil {
			return err
		}
		if err := s.CloseSession(ctx, name, completed(0.01), noon); err != nil {
			return err
		}
		if err := s.AppendEvents(ctx, []escalation.Event{event("shared", name)}); err != nil {
			return err
		}
		parent = session.ID
		if line, err := s.Backward(ctx, parent); err != nil || len(line) != i+1 {
			return fmt.Errorf("%d sessions on the way to the root, want %d: %w", len(line), i+1, err)
		}
	}
	return nil
}

func testConcurrentSameSession(t *testing.T, database backend) {
	open := database(t)
	stores := []*store.Store{open(), open()}
	recorded := make([]escalation.Session, writers)
	group, ctx := errgroup.WithContext(bounded(t))
	for i := range writers {
		group.Go(func() (err error) {
			recorded[i], err = openSession(ctx, stores[i%len(stores)], opening("chain", "session", 0))
			return err
		})
	}
	require.NoError(t, group.Wait())
	for _, record := range recorded {
		require.Equal(t, recorded[0], record)
	}
}

func testEndedContext(t *testing.T, database backend) {
	s := database(t)()
	ctx, cancel := context.WithCancel(bounded(t))
	cancel()
	_, err := openSession(ctx, s, opening("chain", "session", 0))
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, store.IsTransient(err), "a worker that stops must not fail the chain")
	mustOpen(t, s, opening("chain", "session", 0))
}
