package agent

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/cell/hook"
	"github.com/claudeops/claudeops/internal/escalation"
)

// ledger is a Records that keeps charges and decisions in memory.
type ledger struct {
	shelf

	charged []escalation.Charge
}

func (l *ledger) Charge(_ context.Context, charge escalation.Charge) (*escalation.ChargeRefusal, error) {
	l.charged = append(l.charged, charge)
	return nil, nil //nolint:nilnil // no refusal
}

// TestCallsHaveNamesOfTheServicesFile checks that a call's actions are charged and recorded under the same names as in
// a verdict.
func TestCallsHaveNamesOfTheServicesFile(t *testing.T) {
	t.Parallel()
	catalog, err := escalation.NewCatalog([]escalation.Service{{Name: "Shop", Aliases: []string{"shop-web-1"}}})
	require.NoError(t, err)
	called := []guard.Action{{Kind: "restart", Service: "SHOP-web-1"}, {Kind: "restart", Service: " tv"}}
	want := []escalation.CallAction{{Kind: escalation.ActionRestart, Service: "Shop"}, {Kind: escalation.ActionRestart, Service: "tv"}}

	records := &ledger{}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) // by Temporal's clock
	never := escalation.Limit{Window: escalation.Duration(time.Hour)}
	run := activities.AgentRun{ChainID: "chain-1", Now: func() time.Time { return at }, Limits: escalation.Cooldowns{
		Services: map[string]escalation.ServiceCooldowns{"shop-web-1": {Redeployments: &never}}, // its name when the chain began
	}}
	refusal, err := charges{records, catalog, run}.Charge(t.Context(), "toolu_1", called)
	require.NoError(t, err)
	require.Empty(t, refusal)
	require.Equal(t, at, records.charged[0].At)
	require.Equal(t, want, records.charged[0].Actions)
	_, redeployments := records.charged[0].Cooldowns.Limits("Shop")
	require.Equal(t, never, redeployments, "what was forbidden stays forbidden")

	audit := newAuditOf(records)
	audit.catalog = catalog
	audit.record(hook.Entry{Call: "toolu_1", Decision: guard.Decision{Allowed: true, Actions: called}})
	require.Equal(t, want, records.kept[0].Actions)
}
