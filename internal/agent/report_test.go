package agent

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/apiproxy"
	"github.com/claudeops/claudeops/internal/claude"
)

func TestProgressHasTheProxysCount(t *testing.T) {
	t.Parallel()
	require.Equal(t, "so far", progressOf(claude.Progress{Text: "so far"}, apiproxy.Count{}).Text)
	require.InDelta(t, 0.2, progressOf(claude.Progress{CostUSD: 0.2}, apiproxy.Count{}).CostUSD, 1e-12)
	require.InDelta(t, 0.3, progressOf(claude.Progress{CostUSD: 0.2}, apiproxy.Count{Calls: 1, CostUSD: 0.3}).CostUSD, 1e-12)
}
