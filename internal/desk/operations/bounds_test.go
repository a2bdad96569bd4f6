package operations

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

// TestListsAreBounded checks that no list of a chain, of its sessions or of open incidents grows with the records, and
// that what is left out is counted.
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

// TestServicesReadWhatTheyShow checks that the list of services reads neither each open incident nor each action of 30
// days.
func TestServicesReadWhatTheyShow(t *testing.T) { //nolint:paralleltest // it counts allocations
	s := newStage(t, "", "TEMPORAL_ADDRESS=127.0.0.1:1")
	add := func(first, count int) (allocations float64) {
		t.Helper()
		for n := first; n < first+count; n++ {
			report := fault("web")
			report.Verdict.Kind = fmt.Sprint("kind ", n)
			report.Verdict.Actions = []escalation.Action{{Kind: escalation.ActionRestart, Service: "web", Succeeded: true}}
			s.close(s.open(fmt.Sprint("repair", n), chaintest.Noon.Add(time.Duration(n-1_000)*time.Minute*30), nil), report)
		}
		return testing.AllocsPerRun(2, func() {
			list, err := s.operations.Services.List(t.Context())
			require.NoError(t, err)
			require.Equal(t, first+count, list.Services[0].OpenIncidents)
			require.Equal(t, fmt.Sprint("repair", first+count-1), list.Services[0].LastAction.SessionID)
			require.Equal(t, list.Services[0].LastAction.At, list.Services[0].Restarts.Last)
			require.Zero(t, list.Services[0].Restarts.Used)
		})
	}
	few := add(0, maxLooksRead) // no more looks are read
	require.Less(t, add(maxLooksRead, 150), few*1.2)
}

// TestPagesReadWhatTheyShow checks that a page of a list does not read the whole list: it takes a part of the memory.
func TestPagesReadWhatTheyShow(t *testing.T) { //nolint:paralleltest // it counts allocations
	s := newStage(t, "", "TEMPORAL_ADDRESS=127.0.0.1:1")
	const all = 150
	for n := range all {
		report := fault("web")
		report.Verdict.Kind = fmt.Sprint("kind ", n)
		session := s.open(fmt.Sprint("look", n), chaintest.Noon.Add(-time.Hour), nil)
		s.close(session, report)
		require.NoError(t, s.records.RecordProgress(t.Context(), escalation.ChainRun{ChainID: session.ChainID}, escalation.ChainProgress{
			Status: escalation.ChainWaiting, At: chaintest.Noon,
		}))
		content := escalation.MemoryProposal{Kind: "discovery", Service: "web", Subject: fmt.Sprint(n), Text: fmt.Sprintf("Disk %d is old.", n)}
		_, err := s.operations.Memories.Add(t.Context(), content, "ada")
		require.NoError(t, err)
	}
	for name, read := range map[string]func(limit int) (int, error){
		"incidents": func(limit int) (int, error) {
			page, err := s.operations.Incidents.Page(t.Context(), IncidentFilter{All: true, Limit: limit}, "")
			return len(page.Incidents), err
		},
		"incidents after others": func(limit int) (int, error) {
			page, err := s.operations.Incidents.Page(t.Context(), IncidentFilter{Limit: limit}, "3-incident-9999")
			return len(page.Incidents), err
		},
		"waiting incidents": func(limit int) (int, error) {
			page, err := s.operations.Incidents.Page(t.Context(), IncidentFilter{State: "waiting", Limit: limit}, "")
			return len(page.Incidents), err
		},
		"memories": func(limit int) (int, error) {
			page, err := s.operations.Memories.Page(t.Context(), MemoryFilter{Limit: limit}, "")
			return len(page.Memories), err
		},
	} {
		allocations := func(limit, want int) float64 {
			return testing.AllocsPerRun(2, func() {
				count, err := read(limit)
				require.NoError(t, err)
				require.Equal(t, want, count, name)
			})
		}
		whole := all
		if name == "incidents after others" {
			whole -= 3
		}
		few, every := allocations(2, 2), allocations(0, whole)
		t.Logf("%s: %.0f allocations for 2, %.0f for all", name, few, every)
		require.Less(t, few, every/3, name)
	}
}

// TestPagesOfMemories checks that the pages of a list have each memory once, the candidates first, and that a page
// follows a memory that has gone.
func TestPagesOfMemories(t *testing.T) {
	t.Parallel()
	s := newStage(t, "", "TEMPORAL_ADDRESS=127.0.0.1:1")
	for n := range 7 {
		report := ended(0.1, escalation.VerdictHealthy)
		proposal := escalation.MemoryProposal{Kind: "discovery", Service: "web", Subject: fmt.Sprint(n), Text: fmt.Sprintf("Disk %d is old.", n)}
		if n%2 == 0 {
			report.Verdict.Memories = []escalation.MemoryProposal{proposal}
			s.close(s.open(fmt.Sprint("s", n), chaintest.Noon, nil), report)
			continue
		}
		_, err := s.operations.Memories.Add(t.Context(), proposal, "ada")
		require.NoError(t, err)
	}
	memories := s.operations.Memories
	for size := range 9 {
		var paged []string
		for after, pages := "", 0; pages == 0 || after != ""; pages++ {
			page, err := memories.Page(t.Context(), MemoryFilter{Limit: size}, after)
			require.NoError(t, err)
			require.Equal(t, 7, page.Total)
			for _, one := range page.Memories {
				paged = append(paged, one.Subject)
			}
			after = page.Next
			require.LessOrEqual(t, pages, 7)
		}
		require.Equal(t, []string{"6", "4", "2", "0", "5", "3", "1"}, paged, "pages of %d", size)
	}
	page, err := memories.Page(t.Context(), MemoryFilter{Limit: 3}, "")
	require.NoError(t, err)
	_, err = memories.Delete(t.Context(), SeenMemory{Given: page.Memories[2].ID}, "ada")
	require.NoError(t, err)
	next, err := memories.Page(t.Context(), MemoryFilter{Limit: 3}, page.Next)
	require.NoError(t, err)
	require.Equal(t, "5", next.Memories[0].Subject, "it begins at the place of what has gone")
	for _, wrong := range []string{"x", "1", "-1-memory-1", "1-incident-1", "1-memory-0"} {
		_, err := memories.Page(t.Context(), MemoryFilter{}, wrong)
		require.Equal(t, KindInvalid, KindOf(err), wrong)
	}
}
