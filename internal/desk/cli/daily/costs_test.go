package daily

import (
	"bytes"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

func TestWriteCosts(t *testing.T) {
	t.Parallel()
	report := operations.CostReport{From: chaintest.Noon.Add(-36 * time.Hour), To: chaintest.Noon, Zone: "UTC"}
	var b bytes.Buffer
	writeCosts(&b, report)
	report.Total = operations.Cost{USD: 4.506, EstimatedUSD: 0.25, UnknownUSD: 0.5, Sessions: 4}
	report.Days = []operations.DayCost{
		{Day: "2026-02-28"}, {Day: "2026-03-01", Cost: operations.Cost{USD: 4.506, EstimatedUSD: 0.25, UnknownUSD: 0.5, Sessions: 4}},
	}
	report.Tiers = []operations.TierCost{{Tier: 1, Cost: operations.Cost{USD: 0.0027, Sessions: 1}}}
	report.Models = []operations.NamedCost{{Name: "haiku", Cost: operations.Cost{USD: 0.0027, Sessions: 1}}}
	report.Triggers = []operations.NamedCost{{Name: "scheduled", Cost: operations.Cost{USD: 4, Sessions: 4}}}
	report.Services = []operations.NamedCost{{Name: "jelly\x1b[31mfin", Cost: operations.Cost{USD: 3, Sessions: 2}}, {Cost: operations.Cost{USD: 1, Sessions: 2}}}
	report.HealthyLook, report.MonthUSD = operations.HealthyLook{Sessions: 2, AverageUSD: 0.0027}, 67.5
	writeCosts(&b, report)
	chaintest.RequireGolden(t, "costs.txt", b.Bytes())
}
