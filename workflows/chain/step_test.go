package chain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

// TestARecheckThatWaits checks that a recheck keeps its properties while it waits for admission. It still asks a person
// before the step that waited runs, and it does not escalate to a tier below that step's tier.
func TestARecheckThatWaits(t *testing.T) {
	t.Parallel()
	session := &escalation.Session{ID: 7}
	waited := work{Tier: escalation.TierFullRepair, Parent: session}.lookAgain()
	require.Equal(t, escalation.TierFullRepair, waited.MinTier)
	require.Equal(t, waited, waited.lookAgain())

	healed := work{Tier: escalation.TierSafeRepair, Parent: session}.checkHealed(nil)
	require.True(t, healed.lookAgain().Healed)
}
