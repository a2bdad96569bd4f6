package operations

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

// TestListsAreBounded checks that no list of a chain, of its sessions or of open incidents grows with the records, and that what is left
// out is counted.
func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	s := newStage(t, "", "TEMPORAL_ADDRESS=127.0.0.1:1")
	const sessions, calls, faults = 1_003, 5_004, 202
	var line []escalation.Session
	for n := range sessions {
		line = append(line, s.open(fmt.Sprint("s", n), chaintest.Noon.Add(time.Duration(n-sessions)*time.Minute), func(one *escalation.Session) {
			one.ChainID = "chain-long"
			if n > 0 {
				one.ParentID = line[n-1].ID
			}
		}))
		s.close(line[n], ended(0.01, escalation.VerdictHealthy))
	}
	decisions := make([]escalation.CallDecision, calls)
	for n := range decisions {
		decisions[n] = escalation.CallDecision{
			ChainID: "chain-long", SessionID: "s1", Call: fmt.Sprint("call ", n), Tier: escalation.TierObserve, Tool: "Bash", At: chaintest.Noon,
		}
	}
	require.NoError(t, s.records.AppendDecisions(t.Context(), decisions))

	chain, err := recordedChain(t.Context(), s.records, "chain-long")
	require.NoError(t, err)
	require.Len(t, chain.Sessions, 1_000)
	require.Equal(t, "s1002", chain.Last().SessionID)
	require.Equal(t, 3, chain.Earlier.Sessions)
	require.InDelta(t, 0.03, chain.Earlier.CostUSD, 1e-6)
	require.InDelta(t, sessions*0.01, chain.CostUSD, 1e-6)
	require.Equal(t, line[0].StartedAt, chain.StartedAt.UTC())
	s.operations.backend.connection = &Connection{Client: &fakeTemporal{}, Namespace: "default"}
	found := s.operations.backend.recordedCalls(t.Context(), "chain-long")
	s.operations.backend.connection = nil
	require.Len(t, found, 5_000)
	require.Equal(t, "call 5003", found[4_999].Call)

	for n, want := range map[int][2]int{0: {1, 1_000}, sessions - 1: {1_000, 1}} {
		lineage, err := s.operations.Chains.Session(t.Context(), line[n].ID)
		require.NoError(t, err)
		require.Equal(t, want, [2]int{len(lineage.Backward), len(lineage.Forward)})
		require.Equal(t, line[n].ID, lineage.Backward[0].ID)
		require.Equal(t, line[n].ID, lineage.Forward[0].ID)
	}
	own, err := s.operations.Sessions.Calls(t.Context(), line[1].ID)
	require.NoError(t, err)
	require.Len(t, own, 5_000)
	require.Equal(t, "call 0", own[0].Call)

	for n := range faults {
		report := fault("web")
		report.Verdict.Kind = fmt.Sprint("kind ", n)
		s.close(s.open(fmt.Sprint("look", n), chaintest.Noon.Add(-time.Hour), nil), report)
	}
	now := s.operations.Overview.Now(t.Context())
	require.Empty(t, now.Incidents.Problem)
	require.Len(t, now.Incidents.Incidents, 200)
	require.Equal(t, faults, now.Incidents.Open)
	web, err := s.operations.Services.Get(t.Context(), "web")
	require.NoError(t, err)
	require.Len(t, web.Incidents, 200)
	require.Equal(t, faults, web.OpenIncidents)

	for n := range 11 {
		var names []string
		for m := range 100 {
			names = append(names, fmt.Sprint("service ", 100*n+m))
		}
		s.close(s.open(fmt.Sprint("many", n), chaintest.Noon.Add(-time.Hour), nil), ended(0.01, escalation.VerdictHealthy, names...))
	}
	services, err := s.operations.Services.List(t.Context())
	require.NoError(t, err)
	require.Len(t, services.Services, 1_000)
}
