package operations

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

// elsewhere returns a connected backend whose state directory is new.
func elsewhere(t *testing.T) *backend {
	t.Helper()
	b := New(Options{Environ: []string{"HOME=" + t.TempDir()}, Clock: time.Now}).backend
	b.connection = &Connection{Client: &fakeTemporal{}, Namespace: "default"}
	return b
}

// TestCallsElsewhere checks that calls are omitted if the records are not on this host, and that no database is
// created.
func TestCallsElsewhere(t *testing.T) {
	t.Parallel()
	b := elsewhere(t)
	cfg, err := b.config()
	require.NoError(t, err)
	require.Nil(t, b.recordedCalls(t.Context(), "chain-42"))
	require.NoFileExists(t, cfg.State.DatabaseFile())

	records, err := supervisor.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, records.Close())
	calls := b.recordedCalls(t.Context(), "chain-42")
	require.NoError(t, b.close())
	require.Empty(t, calls)
	require.NotNil(t, calls, "no calls are not the same as none that are known")

	broken := elsewhere(t)
	cfg, err = broken.config()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(cfg.State.DatabaseFile()), 0o700))
	require.NoError(t, os.WriteFile(cfg.State.DatabaseFile(), []byte("no database at all"), 0o600))
	require.Nil(t, broken.recordedCalls(t.Context(), "chain-42"))
}

// TestRecordsOfAnotherNamespace asks for chains while the records belong to another namespace, or nobody can tell whose
// they are.
func TestRecordsOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	temporal := &fakeTemporal{}
	b := s.operations.backend
	b.connection = &Connection{Client: temporal, Namespace: "default"}
	require.NoError(t, s.records.Claim(t.Context(), store.Namespace{ID: "ns-0", Name: "other"}, chaintest.Noon))
	s.open("a", chaintest.Noon, nil)
	temporal.service.away = errors.New("denied")
	for _, want := range []string{
		"it is unknown whether the records are those of this namespace: look up the id of namespace \"default\": denied",
		"the records belong to another Temporal namespace",
	} {
		_, err := b.recorded(t.Context(), "chain-a")
		require.ErrorContains(t, err, want)
		require.Nil(t, b.recordedCalls(t.Context(), "chain-a"))
		require.Empty(t, b.settled(t.Context(), escalation.Chain{ID: "chain-a"}).Sessions)
		_, err = Conversations{b}.History(t.Context(), "ada", 9)
		require.ErrorContains(t, err, want)
		temporal.service.away = nil
	}
}
