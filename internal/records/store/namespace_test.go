package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/records/store"
)

// here and there are namespaces of the same name in two clusters.
var (
	here  = store.Namespace{ID: "0b1f2f0a-6a0e-4a57-9f39-1f0a3f6f2c11", Name: "default"}
	there = store.Namespace{ID: "b7d0c5c2-92a4-4c0e-8a26-5e0d7f1f9a42", Name: "default"}
)

// testClaim checks that a database belongs to the namespace of its first worker, until it is released.
func testClaim(t *testing.T, database backend) {
	s := database(t)()
	require.NoError(t, s.CheckNamespace(bounded(t), there), "it belongs to nobody yet")
	require.NoError(t, s.Claim(bounded(t), here, noon))
	require.NoError(t, s.Claim(bounded(t), here, noon.Add(time.Minute)))
	require.NoError(t, s.CheckNamespace(bounded(t), here))
	for _, err := range []error{s.CheckNamespace(bounded(t), there), s.Claim(bounded(t), there, noon.Add(time.Hour))} {
		require.ErrorIs(t, err, store.ErrForeign)
		require.False(t, store.IsTransient(err))
		require.ErrorContains(t, err, `has those of namespace "default" (`+here.ID+"): give namespace \"default\" ("+there.ID+") a database of its own")
		require.ErrorContains(t, err, "claudeops db release")
		require.NotContains(t, err.Error(), "\n")
	}

	require.ErrorIs(t, s.Release(bounded(t), noon.Add(2*time.Minute)), store.ErrConflict, "a worker runs")
	require.NoError(t, s.Release(bounded(t), noon.Add(4*time.Minute)))
	require.NoError(t, s.Claim(bounded(t), there, noon.Add(4*time.Minute)))
	require.ErrorIs(t, s.Claim(bounded(t), here, noon.Add(5*time.Minute)), store.ErrForeign, "a worker that has slept takes nothing back")
}

// testClaimAtOnce starts workers of two namespaces at the same time. The records belong to one of them.
func testClaimAtOnce(t *testing.T, database backend) {
	open := database(t)
	var errs [8]error
	var group errgroup.Group
	for i := range errs {
		s, own := open(), []store.Namespace{here, there}[i%2]
		group.Go(func() error {
			errs[i] = s.Claim(bounded(t), own, noon)
			return nil
		})
	}
	require.NoError(t, group.Wait())
	won, lost := errs[0], errs[1]
	if won != nil {
		won, lost = lost, won
	}
	require.NoError(t, won)
	require.ErrorIs(t, lost, store.ErrForeign)
	for i, err := range errs {
		require.Equal(t, errs[i%2] == nil, err == nil, "worker %d", i)
	}
}
