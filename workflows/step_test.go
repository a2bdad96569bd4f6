package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

// TestARecheckThatWaits checks that a recheck which had to wait for admission is the same recheck afterwards: it still asks a
// person before the step that waited runs, and escalates no lower.
func TestARecheckThatWaits(t *testing.T) {
	t.Parallel()
	session := &escalation.Session{ID: 7}
	waited := step{tier: escalation.TierFullRepair, parent: session}.lookAgain()
	require.Equal(t, escalation.TierFullRepair, waited.minTier)
	require.Equal(t, waited, waited.waiting(escalation.Decision{}).lookAgain())

	healed := step{tier: escalation.TierSafeRepair, parent: session}.checkHealed(nil)
	require.True(t, healed.waiting(escalation.Decision{}).lookAgain().healed)
}
