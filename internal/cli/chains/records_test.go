package chains

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cli/chaintest"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// TestCallsElsewhere checks that calls are omitted if the records are not on this host, and that no database is
// created.
func TestCallsElsewhere(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load([]string{"HOME=" + t.TempDir()})
	require.NoError(t, err)
	require.Nil(t, recordedCalls(t.Context(), cfg, store.Namespace{}, "chain-42"))
	require.NoFileExists(t, cfg.State.DatabaseFile())
	text, err := json.Marshal(View{escalation.Chain{ID: "chain-42"}, nil})
	require.NoError(t, err)
	require.NotContains(t, string(text), `"calls"`)

	records, err := supervisor.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, records.Close())
	require.Empty(t, recordedCalls(t.Context(), cfg, store.Namespace{}, "chain-42"))
	text, err = json.Marshal(View{escalation.Chain{ID: "chain-42"}, recordedCalls(t.Context(), cfg, store.Namespace{}, "chain-42")})
	require.NoError(t, err)
	require.Contains(t, string(text), `"calls":[]`, "no calls are not the same as none that are known")

	cfg.State.DatabaseURL = "sqlite://" + filepath.Join(t.TempDir(), "other.db")
	require.NoError(t, os.WriteFile(cfg.State.DatabaseFile(), []byte("no database at all"), 0o600))
	require.Nil(t, recordedCalls(t.Context(), cfg, store.Namespace{}, "chain-42"))
}

// TestRecordsOfNamespaces reads chains of one ID that two namespaces have recorded.
func TestRecordsOfNamespaces(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load([]string{"HOME=" + t.TempDir()})
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
		found, err := recordedIn(t.Context(), cfg, own, id)
		require.NoError(t, err)
		require.Equal(t, want, found, id)
	}
	chain, err := recordedChain(t.Context(), cfg, own, "shared")
	require.NoError(t, err)
	require.Len(t, chain.Sessions, 1)
	text, err := json.Marshal(View{chain, nil})
	require.NoError(t, err)
	require.Contains(t, string(text), `"namespace":"ops","namespace_id":"1"`)
	require.Empty(t, settled(t.Context(), cfg, own, escalation.Chain{ID: "gone"}).Sessions, "of a chain of its own it has none")
}
