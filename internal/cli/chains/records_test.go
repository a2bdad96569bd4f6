package chains

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// TestCallsElsewhere checks that calls are omitted if the records are not on this host, and that no database is
// created.
func TestCallsElsewhere(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load([]string{"HOME=" + t.TempDir()})
	require.NoError(t, err)
	require.Nil(t, recordedCalls(t.Context(), cfg, "chain-42"))
	require.NoFileExists(t, cfg.State.DatabaseFile())
	text, err := json.Marshal(View{escalation.Chain{ID: "chain-42"}, nil})
	require.NoError(t, err)
	require.NotContains(t, string(text), `"calls"`)

	records, err := supervisor.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, records.Close())
	require.Empty(t, recordedCalls(t.Context(), cfg, "chain-42"))
	text, err = json.Marshal(View{escalation.Chain{ID: "chain-42"}, recordedCalls(t.Context(), cfg, "chain-42")})
	require.NoError(t, err)
	require.Contains(t, string(text), `"calls":[]`, "no calls are not the same as none that are known")

	cfg.State.DatabaseURL = "sqlite://" + filepath.Join(t.TempDir(), "other.db")
	require.NoError(t, os.WriteFile(cfg.State.DatabaseFile(), []byte("no database at all"), 0o600))
	require.Nil(t, recordedCalls(t.Context(), cfg, "chain-42"))
}
