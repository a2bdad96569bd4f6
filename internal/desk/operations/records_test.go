package operations

import (
	"encoding/json"
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

// elsewhere returns a backend whose state directory is new.
func elsewhere(t *testing.T) *backend {
	t.Helper()
	return New(Options{Environ: []string{"HOME=" + t.TempDir()}, Clock: time.Now}).backend
}

// TestCallsElsewhere checks that calls are omitted if the records are not on this host, and that no database is
// created.
func TestCallsElsewhere(t *testing.T) {
	t.Parallel()
	b := elsewhere(t)
	cfg, err := b.config()
	require.NoError(t, err)
	require.Nil(t, b.recordedCalls(t.Context(), store.Namespace{}, "chain-42"))
	require.NoFileExists(t, cfg.State.DatabaseFile())

	records, err := supervisor.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, records.Close())
	calls := b.recordedCalls(t.Context(), store.Namespace{}, "chain-42")
	require.NoError(t, b.close())
	require.Empty(t, calls)
	require.NotNil(t, calls, "no calls are not the same as none that are known")

	broken := elsewhere(t)
	cfg, err = broken.config()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(cfg.State.DatabaseFile()), 0o700))
	require.NoError(t, os.WriteFile(cfg.State.DatabaseFile(), []byte("no database at all"), 0o600))
	require.Nil(t, broken.recordedCalls(t.Context(), store.Namespace{}, "chain-42"))
}

// TestRecordsOfNamespaces reads chains of one ID that two namespaces have recorded.
func TestRecordsOfNamespaces(t *testing.T) {
	t.Parallel()
	b := elsewhere(t)
	cfg, err := b.config()
	require.NoError(t, err)
	records, err := supervisor.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	own, old, last := store.Namespace{ID: "1", Name: "ops"}, store.Namespace{ID: "3", Name: "old"}, store.Namespace{ID: "2", Name: "last"}
	open := func(namespace store.Namespace, chainID string) {
		t.Helper()
		session := escalation.Session{ChainID: chainID, SessionID: chainID + " " + namespace.Name, Tier: 1, StartedAt: chaintest.Noon}
		_, err := records.In(namespace).OpenSession(t.Context(), session, escalation.AdmissionRequest{},
			escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)})
		require.NoError(t, err)
	}
	for _, namespace := range []store.Namespace{own, old, last} {
		open(namespace, "shared")
	}
	open(old, "gone")
	open(last, "gone")

	for id, want := range map[string]store.Namespace{"shared": own, "gone": last, "unknown": own} {
		found, err := recordedIn(t.Context(), records, own, id)
		require.NoError(t, err)
		require.Equal(t, want, found, id)
	}
	chain, err := recordedChain(t.Context(), records.In(own), "shared")
	require.NoError(t, err)
	require.Len(t, chain.Sessions, 1)
	text, err := json.Marshal(chain)
	require.NoError(t, err)
	require.Contains(t, string(text), `"namespace":"ops","namespace_id":"1"`)
	t.Cleanup(func() { require.NoError(t, b.close()) })
	require.Empty(t, b.settled(t.Context(), own, escalation.Chain{ID: "gone"}).Sessions, "of a chain of its own it has none")
}
