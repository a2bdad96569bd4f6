package daily

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

func TestWritePlan(t *testing.T) {
	t.Parallel()
	running, approved := chaintest.Planned(), chaintest.Amended()
	fresh := running
	fresh.Plan, fresh.Gates, fresh.CostUSD = &escalation.PlanState{Task: escalation.PlanRun, File: "docs/ports.md"}, nil, 0
	aborted := chaintest.Planned()
	aborted.Outcome, aborted.Reason, aborted.Plan.State = escalation.OutcomeAborted, "ada ends the work", ""
	for name, test := range map[string]struct {
		now   operations.Snapshot
		width int
	}{
		"plan-gate.txt":     {operations.Snapshot{Chain: running, Live: true}, console.AnyWidth},
		"plan-narrow.txt":   {operations.Snapshot{Chain: running, Live: true}, 60},
		"plan-approved.txt": {operations.Snapshot{Chain: approved}, console.AnyWidth},
		"plan-new.txt":      {operations.Snapshot{Chain: fresh, Live: true}, console.AnyWidth},
		"plan-aborted.txt":  {operations.Snapshot{Chain: aborted}, console.AnyWidth},
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

// TestGateOfAPlan checks that the terminal offers to continue a session exactly where the gate does: not after a
// finding of the reviewer, which the author corrects next.
func TestGateOfAPlan(t *testing.T) {
	t.Parallel()
	resumable, escalated := chaintest.Resumable(), chaintest.Planned()
	for name, chain := range map[string]escalation.Chain{"gate-plan-c.txt": resumable, "gate-plan.txt": escalated} {
		text := strings.Join(gateText(chaintest.Clock, chain.ID, *chain.OpenGate(), 100), "\n") + "\n"
		chaintest.RequireGolden(t, name, []byte(text))
	}
	answer, err := escalation.ParseGateReply(*resumable.OpenGate(), "c: use port 8443")
	require.NoError(t, err)
	require.Equal(t, escalation.GateAnswer{GateID: "gate-1", Action: escalation.GateContinue, Guidance: "use port 8443"}, answer)
	_, err = escalation.ParseGateReply(*escalated.OpenGate(), "c")
	require.EqualError(t, err, "gate-1 does not offer to continue: the next step is a correction, and the last session was that of the reviewer")

	gate := *escalated.OpenGate()
	for reply, question := range map[string]string{"o": "Accept phase 2 as it is. Sure?", "q": "The chain ends here. Sure?"} {
		require.Equal(t, question, (&gateForm{Gate: gate, reply: reply}).confirmation())
	}
	var b bytes.Buffer
	a := &app{&console.Console{Clock: chaintest.Clock}}
	rows := []operations.GateRow{{ChainID: escalated.ID, Cost: escalation.Cost{CostUSD: gate.CostUSD}, Gate: &gate}}
	a.writeGateTable(&b, rows, 100)
	a.writeGateBlocks(&b, rows, 60)
	chaintest.RequireGolden(t, "gates-plan.txt", b.Bytes())
}
