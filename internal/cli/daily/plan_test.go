package daily

import (
	"bytes"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/chaintest"
	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/operations"
)

func TestWritePlan(t *testing.T) {
	t.Parallel()
	running, approved := chaintest.Planned(), chaintest.Amended()
	fresh := running
	fresh.Plan, fresh.Gates, fresh.CostUSD = &escalation.PlanState{Task: escalation.PlanRun, File: "docs/ports.md"}, nil, 0
	for name, test := range map[string]struct {
		now   operations.Snapshot
		width int
	}{
		"plan-gate.txt":     {operations.Snapshot{Chain: running, Live: true}, console.AnyWidth},
		"plan-narrow.txt":   {operations.Snapshot{Chain: running, Live: true}, 60},
		"plan-approved.txt": {operations.Snapshot{Chain: approved}, console.AnyWidth},
		"plan-new.txt":      {operations.Snapshot{Chain: fresh, Live: true}, console.AnyWidth},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			writePlan(&b, chaintest.Clock, test.width, test.now)
			chaintest.RequireGolden(t, name, b.Bytes())
		})
	}
}

func TestTreeOfAPlan(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	writeSnapshot(&b, chaintest.Clock, operations.Snapshot{Chain: chaintest.Planned(), Live: true}, deniedCalls)
	chaintest.RequireGolden(t, "tree-plan.txt", b.Bytes())
}

func TestGateOfAPlan(t *testing.T) {
	t.Parallel()
	chain := chaintest.Planned()
	gate := *chain.OpenGate()
	gate.Role, gate.Resume = "author", "execute"
	gate.Continuation = &escalation.Continuation{
		SessionID: chaintest.Conversation(5), Tier: escalation.TierSafeRepair, Role: "author", Resume: "execute",
		Status: escalation.SessionTimedOut,
	}
	text := strings.Join(gateText(chaintest.Clock, chain.ID, gate, 100), "\n") + "\n"
	chaintest.RequireGolden(t, "gate-plan.txt", []byte(text))
	var b bytes.Buffer
	a := &app{&console.Console{Clock: chaintest.Clock}}
	rows := []operations.GateRow{{ChainID: chain.ID, CostUSD: gate.CostUSD, Gate: &gate}}
	a.writeGateTable(&b, rows, 100)
	a.writeGateBlocks(&b, rows, 60)
	chaintest.RequireGolden(t, "gates-plan.txt", b.Bytes())
}
