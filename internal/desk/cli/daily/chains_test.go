package daily

import (
	"bytes"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

func TestWriteChains(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	writeChains(&b, nil)
	writeChains(&b, []operations.Row{
		{ID: "chain-2", Status: "running", Tier: 2, Services: []string{"jellyfin", "postgres"}, Cost: escalation.Cost{CostUSD: 0.5}},
		{ID: "chain-3", Status: "running", Gate: "open", Tier: 1, Cost: escalation.Cost{CostUSD: 0.02}},
		{ID: "chain-4", Status: "terminated", Gate: "open", Tier: 1, Cost: escalation.Cost{CostUSD: 0.02}},
		{ID: "plan-run-ports", Status: "running", Tier: 2, Trigger: "plan", Plan: "docs/ports.md", Cost: escalation.Cost{CostUSD: 0.84}},
		{ID: "plan-7", Status: "running", Trigger: "plan"},
		{ID: "chain-1", Status: "completed", Outcome: "healthy", Tier: 1, Cost: escalation.Cost{CostUSD: 0.0004}},
	})
	chaintest.RequireGolden(t, "chains.txt", bytes.ReplaceAll(b.Bytes(), []byte(time.Time{}.Local().Format(time.DateTime)), []byte("0001-01-01 00:00:00")))
}
