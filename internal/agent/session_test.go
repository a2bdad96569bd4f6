package agent

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/escalation"
)

// ledger is a Records that keeps charges and decisions in memory.
type ledger struct {
	Records

	charged []escalation.Charge
	kept    []escalation.CallDecision
}

func (l *ledger) AppendDecisions(_ context.Context, decisions []escalation.CallDecision) error {
	l.kept = append(l.kept, decisions...)
	return nil
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
	s := session{records, catalog, run, nil}
	refusal, err := s.Charge(t.Context(), "toolu_1", called)
	require.NoError(t, err)
	require.Empty(t, refusal)
	require.Equal(t, at, records.charged[0].At)
	require.Equal(t, want, records.charged[0].Actions)
	_, redeployments := records.charged[0].Cooldowns.Limits("Shop")
	require.Equal(t, never, redeployments, "what was forbidden stays forbidden")

	require.NoError(t, s.Decided(t.Context(), []cell.Entry{{
		Session: "s", Tier: 2, Call: "toolu_1", Tool: "Bash", Input: []byte(`{"command":"docker restart web"}`),
		Decision: guard.Decision{Allowed: true, Rule: "docker restart", Actions: called},
	}}))
	require.Equal(t, []escalation.CallDecision{{
		ChainID: "chain-1", SessionID: "s", Tier: 2, Call: "toolu_1", Tool: "Bash", Input: `{"command":"docker restart web"}`, Allowed: true,
		Rule: "docker restart", Actions: want,
	}}, records.kept)
}

// TestSpec checks what a cell gets of a run: the files of its chain, and for a dry run no more than Tier 1 may do.
func TestSpec(t *testing.T) {
	t.Parallel()
	states := []escalation.ServiceState{{Service: "web", Restarts: escalation.Use{Used: 2}}}
	run := activities.AgentRun{
		ChainID: "chain/1", Tier: escalation.TierFullRepair, DryRun: true, ChainFiles: true, Cooldowns: states, LeavesHandoff: true, Prompt: "look",
	}
	spec, err := new(Runner).spec(workplace{}, run, nil)
	require.NoError(t, err)
	require.Equal(t, 1, spec.Tier)
	require.Equal(t, map[string]string{"CLAUDEOPS_CHAIN_ID": "chain/1", "CLAUDEOPS_TIER": "3"}, spec.Env)
	require.Equal(t, ".claudeops", spec.Workspace.Parent)
	require.Equal(t, activities.ChainDirName("chain/1"), spec.Workspace.Name)
	require.Equal(t, "handoff.json", spec.Workspace.Asked)
	handoff, err := json.Marshal(escalation.NewHandoff(1, 2, nil, states).Cooldowns)
	require.NoError(t, err)
	require.JSONEq(t, string(handoff), string(spec.Workspace.Files["cooldown.json"]), "the shape of a handoff's cooldown_state")
	prompt, err := spec.LatePrompt(t.Context(), "/tmp")
	require.NoError(t, err)
	require.Equal(t, "look", prompt)

	run.DryRun, run.ChainFiles = false, false
	run.LatePrompt = func() (string, error) { return "made late", nil }
	spec, err = new(Runner).spec(workplace{}, run, nil)
	require.NoError(t, err)
	require.Equal(t, 3, spec.Tier)
	require.Nil(t, spec.Workspace)
	prompt, err = spec.LatePrompt(t.Context(), "/tmp")
	require.NoError(t, err)
	require.Equal(t, "made late", prompt)
}
