package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// testManyServices closes a session with the longest list of services. Costs keeps as many as fit into an index.
func testManyServices(t *testing.T, database backend) {
	s := database(t)()
	report := completed(1)
	report.Verdict.Services = nil
	for i := range escalation.MaxServices {
		report.Verdict.Services = append(report.Verdict.Services, fmt.Sprintf("%03d%s", i, strings.Repeat("ü", 97)))
	}
	mustOpen(t, s, opening("chain", "a", 0))
	mustClose(t, s, "a", report, noon)
	costs, err := s.Costs(bounded(t), noon, noon.Add(time.Hour))
	require.NoError(t, err)
	require.Len(t, costs.Kinds, 1)
	require.Equal(t, report.Verdict.Services[:7], costs.Kinds[0].Services)
	named, err := s.NamedServices(bounded(t), noon)
	require.NoError(t, err)
	require.Equal(t, report.Verdict.Services[:7], named)
	detail, err := s.SessionDetail(bounded(t), 1)
	require.NoError(t, err)
	require.Equal(t, report.Verdict.Services, detail.Session.Verdict.Services)
}

func testServiceActions(t *testing.T, database backend) {
	s := database(t)()
	first, second := opening("chain", "a", 0), opening("other", "b", 0)
	second.Tier, second.Model = escalation.TierSafeRepair, "sonnet"
	mustOpen(t, s, first)
	mustOpen(t, s, second)
	report := did("Web", 2)
	report.Verdict.Services = []string{"Web", "db"}
	mustClose(t, s, "a", report, noon)
	mustClose(t, s, "b", did("web", 1), noon.Add(time.Hour))
	action := func(service, chain, id string, session int64, at time.Time, tier escalation.Tier, model string) store.ServiceAction {
		return store.ServiceAction{
			LedgerEntry: escalation.LedgerEntry{
				Service: service, Kind: escalation.ActionRestart, At: at, ChainID: chain, SessionID: id, Succeeded: true,
			},
			Session: session, Tier: tier, Model: model,
		}
	}
	early := action("Web", "chain", "a", 1, noon, 1, "haiku")
	late := action("web", "other", "b", 2, noon.Add(time.Hour), 2, "sonnet")
	for name, tt := range map[string]struct {
		got  func() ([]store.ServiceAction, error)
		want []store.ServiceAction
	}{
		"all":         {func() ([]store.ServiceAction, error) { return s.ActionsSince(bounded(t), noon.Add(-1)) }, []store.ServiceAction{late, early, early}},
		"recent":      {func() ([]store.ServiceAction, error) { return s.ActionsSince(bounded(t), noon) }, []store.ServiceAction{late}},
		"the latest":  {func() ([]store.ServiceAction, error) { return s.LatestActions(bounded(t), noon.Add(-1)) }, []store.ServiceAction{late}},
		"a service":   {func() ([]store.ServiceAction, error) { return s.ActionsOf(bounded(t), "WEB", 2) }, []store.ServiceAction{late, early}},
		"none":        {func() ([]store.ServiceAction, error) { return s.ActionsOf(bounded(t), "db", 9) }, []store.ServiceAction{}},
		"a session's": {func() ([]store.ServiceAction, error) { return s.SessionActions(bounded(t), "a") }, []store.ServiceAction{early, early}},
	} {
		got, err := tt.got()
		require.NoError(t, err, name)
		require.Equal(t, tt.want, got, name)
	}
	named, err := s.NamedServices(bounded(t), noon)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"Web", "db", "jellyfin"}, named)
}

func testSessionDetail(t *testing.T, database backend) {
	s := database(t)()
	parent := mustOpen(t, s, opening("chain", "parent", 0))
	own := mustOpen(t, s, opening("chain", "own", parent.ID))
	child := mustOpen(t, s, opening("chain", "child", own.ID))
	other := mustOpen(t, s, opening("other", "other", own.ID))
	events := []escalation.Event{event("chain", "1"), event("chain", "2"), event("chain", "3")}
	events[0].SessionID, events[2].SessionID = "own", "own"
	require.NoError(t, s.AppendEvents(bounded(t), events))
	lost := escalation.Report{Status: escalation.SessionFailed, Cost: escalation.Cost{CostUSD: 0.5}, Error: "its worker died"}
	mustClose(t, s, "own", lost, noon.Add(time.Minute))
	mustClose(t, s, "own", completed(1), noon.Add(time.Hour))

	detail, err := s.SessionDetail(bounded(t), own.ID)
	require.NoError(t, err)
	require.Equal(t, completed(1), detail.Session.Report)
	require.Equal(t, &parent, detail.Parent)
	require.Equal(t, []escalation.Session{child, other}, detail.Children)
	require.Equal(t, []escalation.Event{events[0], events[2]}, detail.Events)
	require.Equal(t, []store.ReplacedReport{{EndedAt: noon.Add(time.Minute), Report: lost}}, detail.Replaced)

	detail, err = s.SessionDetail(bounded(t), parent.ID)
	require.NoError(t, err)
	require.Nil(t, detail.Parent)
	require.Empty(t, detail.Replaced)
	_, err = s.SessionDetail(bounded(t), 99)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func testSessionCalls(t *testing.T, database backend) {
	s := database(t)()
	var all []escalation.CallDecision
	for i, allowed := range []bool{true, false, true, false} {
		call := decision("chain", "a", fmt.Sprint(i))
		call.Allowed = allowed
		all = append(all, call)
	}
	require.NoError(t, s.AppendDecisions(bounded(t), append(all, decision("chain", "b", "9"))))
	calls, err := s.SessionCalls(bounded(t), "a", 3)
	require.NoError(t, err)
	require.Equal(t, store.SessionCalls{
		Decisions: []escalation.CallDecision{all[1], all[3], all[0]}, Allowed: 2, Denied: 2,
	}, calls)
	limit := escalation.Limit{Max: 2, Window: escalation.Duration(time.Hour)}
	notes, err := s.GateNotes(bounded(t), escalation.NotesRequest{
		SessionID: "a", Services: []string{"web"}, At: noon, Limits: escalation.Cooldowns{Restarts: limit},
	})
	require.NoError(t, err)
	require.Equal(t, escalation.GateNotes{
		DeniedCalls: []string{all[3].Describe(), all[1].Describe()}, Denied: 2,
		Cooldowns: []escalation.ServiceState{{Service: "web", Restarts: escalation.Use{Limit: limit, Free: true}, Redeployments: escalation.Use{Free: true}}},
	}, notes)
	allowed, err := s.AllowedCalls(bounded(t), "a")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{all[0].Call, all[2].Call}, allowed)
	calls, err = s.SessionCalls(bounded(t), "none", 3)
	require.NoError(t, err)
	require.Equal(t, store.SessionCalls{Decisions: []escalation.CallDecision{}}, calls)
}

func testLatestResolved(t *testing.T, database backend) {
	s := database(t)()
	for i := range 4 {
		at := noon.Add(time.Duration(i) * time.Hour)
		look := opening("chain", fmt.Sprint(i), 0)
		look.StartedAt = at
		mustOpen(t, s, look)
		report := completed(1)
		report.Verdict = &escalation.Verdict{
			Status: escalation.VerdictEscalate, Summary: "It is down.", Services: []string{fmt.Sprint("web", i)}, Kind: "down",
		}
		mustClose(t, s, look.SessionID, report, at.Add(time.Minute))
		if i > 0 {
			_, err := s.CloseIncident(bounded(t), fmt.Sprint("incident-", i), store.IncidentClosing{Actor: "ada", At: at.Add(2 * time.Minute)})
			require.NoError(t, err)
		}
	}
	counts, err := s.OpenCounts(bounded(t))
	require.NoError(t, err)
	require.Equal(t, []store.OpenCount{{Services: []string{"web3"}, Severity: escalation.SeverityWarning, Count: 1}}, counts)
	list := func(limit int) (ids []string) {
		t.Helper()
		found, err := s.Incidents(bounded(t), store.IncidentFilter{Since: time.Unix(0, 0), Limit: limit})
		require.NoError(t, err)
		for _, incident := range found {
			ids = append(ids, incident.ID)
		}
		return ids
	}
	require.Equal(t, []string{"incident-1", "incident-2", "incident-3", "incident-4"}, list(0))
	require.Equal(t, []string{"incident-3", "incident-4"}, list(1), "the open one, and the one that was resolved last")
}
