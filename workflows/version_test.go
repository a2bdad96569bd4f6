package workflows_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// answeredInANewVersion returns a world whose chain waits at a gate. Another version of the workers becomes current,
// and the chain sees that together with the answer.
func answeredInANewVersion(t *testing.T, action escalation.GateAction) *world {
	t.Helper()
	w := newGatedWorld(t, concludes(escalation.VerdictEscalate, 0.03), ends(escalation.SessionTimedOut))
	w.env.RegisterDelayedCallback(func() {
		w.env.UpdateWorkflow(workflows.ResolveGate, "", &testsuite.TestUpdateCallback{
			OnAccept:   func() { w.env.SetTargetWorkerDeploymentVersionChanged(true) },
			OnReject:   func(err error) { t.Error(err) },
			OnComplete: func(any, error) {},
		}, json.RawMessage(said(action, "as discussed")))
	}, time.Minute)
	return w
}

// TestChainMovesToTheNewVersionAtItsGate checks that an answered chain continues as new, with the answer, in the new
// version.
func TestChainMovesToTheNewVersionAtItsGate(t *testing.T) {
	t.Parallel()
	_, err := answeredInANewVersion(t, escalation.GateContinue).run(t, workflows.ChainInput{Actor: "ben"})
	var anew *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &anew)
	require.EqualValues(t, workflow.ContinueAsNewVersioningBehaviorAutoUpgrade, anew.InitialVersioningBehavior)
}

// TestChainEndsInItsVersion checks that a chain that its answer ends needs no new run.
func TestChainEndsInItsVersion(t *testing.T) {
	t.Parallel()
	result, err := answeredInANewVersion(t, escalation.GateOverride).run(t, workflows.ChainInput{Actor: "ben"})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeOverridden, result.Outcome)
}
