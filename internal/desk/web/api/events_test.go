package api

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/webtest"
)

// TestProgress sees what an agent does, beside the records and on a host that has none. There, Temporal's list of
// running chains replaces the records.
func TestProgress(t *testing.T) {
	t.Parallel()
	release := filepath.Join(t.TempDir(), "release")
	environ := webtest.Install(t, claudesim.Play(claudesim.Always(
		claudesim.Bash("while [ ! -e "+release+" ]; do sleep 0.1; done"), claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictHealthy, Summary: "all is well",
		}))), "CLAUDEOPS_TIER1_TOOLS=Bash")
	elsewhere := slices.Concat(environ, []string{"CLAUDEOPS_STATE_DIR=" + filepath.Join(t.TempDir(), "state")})
	sites := map[string]*site{"beside the records": serve(t, environ), "elsewhere": serve(t, elsewhere)}
	everything := map[string]*listener{}
	for name, s := range sites {
		everything[name] = s.listen(t, "/api/v1/events")
	}
	const id = "chain-working"
	started := sites["elsewhere"].ask(t, http.MethodPost, "/api/v1/chains", map[string]any{"id": id, "max_tier": 1})
	require.Equal(t, http.StatusCreated, started.status, string(started.body))
	ofChain := map[string]*listener{}
	for name, s := range sites {
		ofChain[name] = s.listen(t, "/api/v1/events?chain="+id)
		for _, viewer := range []*listener{everything[name], ofChain[name]} {
			require.Contains(t, viewer.doing(t), "while [ ! -e", name)
		}
	}
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	var ended struct{ Data operations.ChainNews }
	for ended.Data.Status != "ended" {
		require.NoError(t, json.Unmarshal([]byte(ofChain["elsewhere"].until(t, "chain")), &ended))
	}
	var news struct{ Data operations.EventNews }
	for news.Data.Event != escalation.EventChainEnded {
		require.NoError(t, json.Unmarshal([]byte(ofChain["beside the records"].until(t, "chain")), &news))
	}
}

// doing returns what the next session with a call does.
func (l *listener) doing(t testing.TB) string {
	t.Helper()
	for {
		var progress struct{ Data operations.ProgressNews }
		require.NoError(t, json.Unmarshal([]byte(l.until(t, "progress")), &progress))
		if progress.Data.Doing != "" {
			return progress.Data.Doing
		}
	}
}
