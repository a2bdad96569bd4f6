package operations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

// TestWatchReadsRecords checks that each change of the records is reported once, with secrets masked.
func TestWatchReadsRecords(t *testing.T) {
	t.Parallel()
	o := New(Options{Environ: []string{"HOME=" + t.TempDir(), "FLEET_TOKEN=fleet-value-4711"}, Clock: chaintest.Clock})
	cfg, err := o.backend.config()
	require.NoError(t, err)
	records, err := supervisor.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()); require.NoError(t, o.Close()) })
	ctx := t.Context()
	open := func(id string) {
		t.Helper()
		session := escalation.Session{ChainID: "chain-1", SessionID: id, Tier: 1, Model: "haiku", StartedAt: chaintest.Noon}
		_, err := records.OpenSession(ctx, session, escalation.AdmissionRequest{}, escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)})
		require.NoError(t, err)
	}
	event := func(key string, kind escalation.EventKind, message string) escalation.Event {
		return escalation.Event{
			Key: key, ChainID: "chain-1", Kind: kind, Severity: escalation.SeverityInfo, Message: message, At: chaintest.Noon,
		}
	}
	open("before")
	require.NoError(t, records.AppendEvents(ctx, []escalation.Event{event("0", escalation.EventChainStarted, "began")}))

	watch := o.Feed.Watch()
	next := func() []Change {
		t.Helper()
		changes, err := watch.Next(ctx, Interest{})
		require.NoError(t, err)
		return changes
	}
	require.Empty(t, next(), "what was there before is no change")

	open("after")
	verdict := &escalation.Verdict{
		Status: escalation.VerdictNeedsHuman, Summary: "it is down", Services: []string{"jellyfin"},
		Issues: []escalation.Issue{{Summary: "down", Services: []string{"jellyfin"}, Severity: escalation.SeverityWarning}},
	}
	require.NoError(t, records.CloseSession(ctx, "before",
		escalation.Report{Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.25}, Verdict: verdict}, chaintest.Noon.Add(time.Minute)))
	require.NoError(t, records.AppendEvents(ctx, []escalation.Event{
		event("1", escalation.EventDecision, "the token fleet-value-4711\nis bad"), event("2", escalation.EventGateOpened, "asks"),
	}))
	require.NoError(t, records.AppendDecisions(ctx, []escalation.CallDecision{{
		ChainID: "chain-1", SessionID: "after", Call: "c", Tier: 1, At: chaintest.Noon, Tool: "Bash",
		Input: `{"command":"curl -H fleet-value-4711"}`, Rule: "allow curl", Allowed: true,
	}}))
	require.Equal(t, []Change{
		{ChangeSession, "chain-1", chaintest.Noon, SessionNews{2, "after", 1, "haiku", "", "", escalation.SessionRunning, 0}},
		{ChangeSession, "chain-1", chaintest.Noon.Add(time.Minute), SessionNews{1, "before", 1, "haiku", "", "", escalation.SessionCompleted, 0.25}},
		{ChangeChain, "chain-1", chaintest.Noon, EventNews{escalation.EventDecision, escalation.SeverityInfo, "", "the token [masked: FLEET_TOKEN] is bad"}},
		{ChangeGate, "chain-1", chaintest.Noon, EventNews{escalation.EventGateOpened, escalation.SeverityInfo, "", "asks"}},
		{ChangeCall, "chain-1", chaintest.Noon, CallNews{"after", "c", 1, "Bash", "curl -H [masked: FLEET_TOKEN]", true, "allow curl"}},
		{ChangeIncident, "", chaintest.Noon, IncidentNews{"incident-1", true}},
	}, next())
	require.Empty(t, next())

	_, err = records.CloseIncident(ctx, "incident-1", store.IncidentClosing{Actor: "ada", At: chaintest.Noon})
	require.NoError(t, err)
	require.Equal(t, []Change{{ChangeIncident, "", chaintest.Noon, IncidentNews{"incident-1", false}}}, next())
}
