package operations

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

const twoServices = `version: 1
services:
  - {name: jellyfin, aliases: [media], depends_on: [postgres], owner: ada, look: "curl it", runbook: "restart it", criticality: high}
  - {name: postgres}
`

// fault returns the report of a look that finds a fault of services.
func fault(services ...string) escalation.Report {
	report := ended(0.1, escalation.VerdictEscalate, services...)
	report.Verdict.Kind = "down"
	return report
}

// TestServices lists services that the services file, verdicts, locks, incidents and the ledger name.
func TestServices(t *testing.T) {
	t.Parallel()
	s := newStage(t, twoServices, "CLAUDEOPS_RESTART_LIMIT=1/4h", "CLAUDEOPS_REDEPLOYMENT_LIMIT=1/24h")
	ago := func(hours int) time.Time { return chaintest.Noon.Add(-time.Duration(hours) * time.Hour) }
	s.close(s.open("old", ago(31*24), nil), ended(1, escalation.VerdictHealthy, "forgotten"))
	s.close(s.open("look", ago(5), nil), fault("Media", "web"))
	repair := s.open("repair", ago(2), func(session *escalation.Session) {
		session.Tier, session.Model, session.Scope = escalation.TierSafeRepair, "sonnet", []string{"jellyfin"}
	})
	report := ended(1, escalation.VerdictFailed)
	report.Verdict.Actions = []escalation.Action{
		{Kind: escalation.ActionRestart, Service: "Jellyfin", Succeeded: true}, {Kind: escalation.ActionRedeployment, Service: "db"},
	}
	s.close(repair, report)
	s.open("works", ago(1), func(session *escalation.Session) {
		session.Tier, session.Scope = escalation.TierSafeRepair, []string{"web"}
	})

	list, err := s.operations.Services.List(t.Context())
	require.NoError(t, err)
	require.Nil(t, list.HeldBy)
	names := make([]string, len(list.Services))
	for i, service := range list.Services {
		names[i] = service.Name
	}
	require.Equal(t, []string{"jellyfin", "postgres", "db", "web"}, names)
	require.Len(t, list.Services[0].Looks, 1)
	require.Equal(t, escalation.CheckDegraded, list.Services[0].Last().Status, "the look names it, without a check")
	list.Services[0].Looks = nil
	at := ago(2).Add(time.Minute)
	limit := escalation.Limit{Max: 1, Window: escalation.Duration(4 * time.Hour)}
	require.Equal(t, Service{
		Name: "jellyfin", Listed: true, Criticality: escalation.CriticalityHigh, Owner: "ada", DependsOn: []string{"postgres"}, NeededBy: []string{},
		Restarts:      escalation.Use{Used: 1, Limit: limit, FreeAt: at.Add(4 * time.Hour), Last: at},
		Redeployments: escalation.Use{Limit: escalation.Limit{Max: 1, Window: escalation.Duration(24 * time.Hour)}, Free: true},
		OpenIncidents: 1, Severity: escalation.SeverityWarning,
		LastAction: &ServiceAction{
			Service: "jellyfin", Kind: escalation.ActionRestart, At: at, ChainID: "chain-repair", Session: repair.ID, SessionID: "repair",
			Tier: escalation.TierSafeRepair, Model: "sonnet", Succeeded: true,
		},
	}, list.Services[0])
	require.Equal(t, []string{"jellyfin"}, list.Services[1].NeededBy)
	require.False(t, list.Services[2].Listed)
	require.Equal(t, &ServiceHolder{Service: "web", ChainID: "chain-works", Since: ago(1)}, list.Services[3].HeldBy)

	detail, err := s.operations.Services.Get(t.Context(), "MEDIA")
	require.NoError(t, err)
	require.Len(t, detail.Looks, 1)
	detail.Looks = nil
	require.Equal(t, list.Services[0], detail.Service)
	require.Equal(t, []string{"media"}, detail.Aliases)
	require.Equal(t, [2]string{"curl it", "restart it"}, [2]string{detail.Look, detail.Runbook})
	require.Len(t, detail.Incidents, 1)
	require.Len(t, detail.Actions, 1)
	require.False(t, detail.More)

	_, err = s.operations.Services.Get(t.Context(), "forgotten\x1b[31m")
	require.ErrorContains(t, err, `there is no service "forgotten`)
	require.Equal(t, KindNotFound, KindOf(err))
}

// TestServicesHeld lists services while a chain repairs that has named none.
func TestServicesHeld(t *testing.T) {
	t.Parallel()
	s := newStage(t, twoServices)
	s.open("works", chaintest.Noon.Add(-time.Hour), func(session *escalation.Session) { session.Tier = escalation.TierSafeRepair })
	list, err := s.operations.Services.List(t.Context())
	require.NoError(t, err)
	all := &ServiceHolder{ChainID: "chain-works", Since: chaintest.Noon.Add(-time.Hour)}
	require.Equal(t, all, list.HeldBy)
	require.Equal(t, all, list.Services[1].HeldBy)
}

// TestStanding checks what the latest look and open incidents say of a service.
func TestStanding(t *testing.T) {
	t.Parallel()
	looks := func(all ...escalation.CheckStatus) (looks []ServiceLook) {
		for _, status := range all {
			looks = append(looks, ServiceLook{Status: status})
		}
		return looks
	}
	list := ServiceList{Services: []Service{
		{Name: "a", Looks: looks("down", "healthy")},
		{Name: "b", Looks: looks("degraded")},
		{Name: "c", OpenIncidents: 1},
		{Name: "d", Looks: looks("healthy", "down", "healthy"), OpenIncidents: 1},
		{Name: "e", Looks: looks("healthy", "down")},
		{Name: "f"},
	}}
	for standing, want := range map[Standing][]string{
		StandingDown: {"a"}, StandingUnwell: {"b", "c"}, StandingAnswers: {"d"}, StandingUp: {"e"}, StandingUnseen: {"f"},
	} {
		require.Equal(t, want, list.In(standing), standing)
	}
	require.Equal(t, 2, list.Services[3].Well())
}

// TestServiceLooks reads the strip of the latest looks: the worst check of each look counts, the latest look first.
func TestServiceLooks(t *testing.T) {
	t.Parallel()
	s := newStage(t, twoServices)
	for i := range maxServiceLooks + 2 {
		status := escalation.CheckHealthy
		if i == maxServiceLooks+1 {
			status = escalation.CheckDown
		}
		report := ended(0.1, escalation.VerdictHealthy)
		report.Verdict.Checks = []escalation.CheckResult{
			{Service: "Media", CheckType: "http", Status: escalation.CheckHealthy, ResponseTimeMS: 12},
			{Service: "jellyfin", CheckType: "container", Status: status, Error: "it is gone"},
		}
		s.close(s.open(fmt.Sprint("look", i), chaintest.Noon.Add(time.Duration(i-60)*time.Minute), nil), report)
	}
	list, err := s.operations.Services.List(t.Context())
	require.NoError(t, err)
	looks := list.Services[0].Looks
	require.Len(t, looks, maxServiceLooks)
	require.Equal(t, escalation.CheckDown, looks[0].Status)
	require.Equal(t, "it is gone", looks[0].Error)
	require.InDelta(t, 12, looks[0].ResponseTimeMS, 0.1)
	require.Equal(t, escalation.CheckHealthy, looks[1].Status)
	require.Empty(t, list.Services[1].Looks)
}
