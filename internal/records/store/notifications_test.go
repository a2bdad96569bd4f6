package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/records/store"
)

func testDeliveries(t *testing.T, database backend) {
	open := database(t)
	s := open()
	none, err := s.Delivered(bounded(t), "run/1")
	require.NoError(t, err)
	require.Empty(t, none)

	require.NoError(t, s.RecordDelivery(bounded(t), "run/1", "ntfy-1", noon))
	require.NoError(t, s.RecordDelivery(bounded(t), "run/1", "generic-2", noon))
	require.NoError(t, s.RecordDelivery(bounded(t), "run/2", "generic-2", noon))
	require.NoError(t, s.RecordDelivery(bounded(t), "run/1", "ntfy-1", noon.Add(time.Hour)), "twice is fine")
	got, err := open().Delivered(bounded(t), "run/1")
	require.NoError(t, err)
	require.Equal(t, []string{"ntfy-1", "generic-2"}, got)

	for _, broken := range []struct {
		key, target string
		at          time.Time
	}{{"", "t", noon}, {"k", "", noon}, {"k", "t", time.Time{}}} {
		require.ErrorIs(t, s.RecordDelivery(bounded(t), broken.key, broken.target, broken.at), store.ErrInvalid)
	}
}
