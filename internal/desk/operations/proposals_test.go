package operations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

// TestProposalsAreComparedWithWhatWasSeen changes what a proposal is about after the session was told of it. The
// session may run for minutes more: only what it was told counts.
func TestProposalsAreComparedWithWhatWasSeen(t *testing.T) {
	t.Parallel()
	seen := chaintest.Noon
	before, after := seen.Add(-time.Second), seen.Add(time.Second)
	proposal := escalation.Proposal{ChainID: "chain-1", GateID: "gate-1", ToTier: escalation.TierFullRepair}

	require.NoError(t, gateSince(seen, "gate-1", before, proposal))
	require.ErrorContains(t, gateSince(seen, "gate-1", after, proposal), "gate-1 of chain chain-1 has opened since")
	require.ErrorContains(t, gateSince(seen, "gate-2", before, proposal), "waits at another gate by now, gate-2")

	chain := func(tier escalation.Tier, startedAt time.Time) Snapshot {
		return Snapshot{Live: true, Chain: escalation.Chain{ID: "chain-1", Sessions: []escalation.Session{{Tier: tier, StartedAt: startedAt}}}}
	}
	require.NoError(t, chainSince(seen, chain(escalation.TierSafeRepair, before), proposal))
	require.ErrorContains(t, chainSince(seen, chain(escalation.TierSafeRepair, after), proposal), "has gone on since")
	require.ErrorContains(t, chainSince(seen, chain(escalation.TierFullRepair, before), proposal), "has gone on since")
	require.ErrorContains(t, chainSince(seen, Snapshot{}, proposal), "has ended since")

	require.NoError(t, incidentSince(seen, escalation.Incident{ID: "incident-7", ReturnedAt: before, WorseAt: before}))
	require.ErrorContains(t, incidentSince(seen, escalation.Incident{ID: "incident-7", WorseAt: after}), "become worse since")
	require.ErrorContains(t, incidentSince(seen, escalation.Incident{ID: "incident-7", ReturnedAt: after}), "has come back")
	require.ErrorContains(t, incidentSince(seen, escalation.Incident{ID: "incident-7", ResolvedAt: before}), "is resolved already")
}
