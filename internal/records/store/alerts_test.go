package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/alert"
	"github.com/claudeops/claudeops/internal/records/store"
)

// alertDesk receives alerts as a server does.
type alertDesk struct {
	*store.Store

	catalog *escalation.Catalog
	rules   alert.Rules
	now     time.Time
	ids     int
}

func newAlertDesk(t *testing.T, s *store.Store, rules alert.Rules) *alertDesk {
	t.Helper()
	var services []escalation.Service
	for i := range 20 {
		services = append(services, escalation.Service{Name: fmt.Sprintf("s%d", i)})
	}
	catalog, err := escalation.NewCatalog(services)
	require.NoError(t, err)
	rules, err = rules.Complete(catalog)
	require.NoError(t, err)
	return &alertDesk{Store: s, catalog: catalog, rules: rules, now: noon}
}

// send records a delivery of alerts with a status.
func (d *alertDesk) send(t *testing.T, status alert.Status, alerts ...alert.Alert) []alert.Episode {
	t.Helper()
	for i := range alerts {
		alerts[i].Source, alerts[i].Status = "am", status
		alerts[i] = alerts[i].Bounded(d.now)
	}
	episodes, err := d.RecordAlerts(bounded(t), alerts, func(latest *alert.Episode, a alert.Alert) []alert.Episode {
		return d.rules.Receive(d.catalog, latest, a, d.now)
	})
	require.NoError(t, err)
	return episodes
}

// plan waits for a while and plans.
func (d *alertDesk) plan(t *testing.T, after time.Duration) store.AlertsPlanned {
	t.Helper()
	d.now = d.now.Add(after)
	planned, err := d.PlanAlertChains(bounded(t), store.AlertPlan{Rules: d.rules, Now: d.now, NewID: func() string {
		d.ids++
		return fmt.Sprintf("chain-%d", d.ids)
	}})
	require.NoError(t, err)
	return planned
}

func (d *alertDesk) outcomes(t *testing.T) map[alert.Outcome]int {
	t.Helper()
	counts, err := d.AlertCounts(bounded(t))
	require.NoError(t, err)
	found := map[alert.Outcome]int{}
	for _, count := range counts {
		found[count.Outcome] = count.Alerts
	}
	return found
}

func alertOf(service, name string) alert.Alert {
	return alert.Alert{
		Identity: service + name, Name: name, StartsAt: noon,
		Labels: map[string]string{"service": service}, Annotations: map[string]string{"summary": "it's down"},
	}
}

func testAlerts(t *testing.T, database backend) {
	open := database(t)
	d := newAlertDesk(t, open(), alert.Rules{})
	none, err := d.Alerts(bounded(t), store.AlertFilter{})
	require.NoError(t, err)
	require.Empty(t, none)
	next, err := d.NextAlert(bounded(t))
	require.NoError(t, err)
	require.True(t, next.IsZero())

	first := d.send(t, alert.Firing, alertOf("s1", "Down"), alertOf("tv", "Down"))
	again := d.send(t, alert.Firing, alertOf("s1", "Down"))
	require.Equal(t, first[0].Number, again[0].Number)
	require.Equal(t, 2, again[0].Received)
	require.Equal(t, map[alert.Outcome]int{alert.OutcomeWaiting: 1, alert.OutcomeUnmapped: 1}, d.outcomes(t))
	kept, err := open().Alert(bounded(t), first[0].Number)
	require.NoError(t, err)
	require.Equal(t, again[0], kept, "every field is kept")
	_, err = d.Alert(bounded(t), 99)
	require.ErrorIs(t, err, store.ErrNotFound)
	next, err = d.NextAlert(bounded(t))
	require.NoError(t, err)
	require.Equal(t, noon.Add(30*time.Second), next)

	require.Empty(t, d.plan(t, 29*time.Second).Chains, "it gathers")
	planned := d.plan(t, time.Second)
	require.Len(t, planned.Chains, 1)
	require.Equal(t, "s1", planned.Chains[0].Service)
	require.Empty(t, d.plan(t, time.Minute).Chains, "a plan is made once")

	pending, err := open().PendingAlertChains(bounded(t))
	require.NoError(t, err)
	require.Len(t, pending, 1, "another host starts what the first one has planned")
	require.Equal(t, "Down", pending[0].Alerts[0].Name)
	require.Equal(t, alert.OutcomeStarted, pending[0].Alerts[0].Outcome)
	require.NoError(t, d.AlertChainStarted(bounded(t), "chain-1", d.now))
	pending, err = d.PendingAlertChains(bounded(t))
	require.NoError(t, err)
	require.Empty(t, pending)

	// Another fault of the service while the chain runs joins it, and is looked at after the chain if it still fires.
	joined := d.send(t, alert.Firing, alertOf("s1", "Slow"))
	require.Empty(t, d.plan(t, time.Minute).Chains)
	slow, err := d.Alert(bounded(t), joined[0].Number)
	require.NoError(t, err)
	require.Equal(t, alert.OutcomeJoined, slow.Outcome)
	require.Equal(t, "chain-1", slow.ChainID)
	running, err := d.OpenAlertChains(bounded(t))
	require.NoError(t, err)
	require.Equal(t, []string{"chain-1"}, running)
	require.NoError(t, d.AlertChainsEnded(bounded(t), running, d.now))
	require.Empty(t, d.plan(t, 9*time.Minute).Chains, "sources say late that an alert has resolved")
	planned = d.plan(t, time.Minute)
	require.Len(t, planned.Chains, 1)
	require.Equal(t, map[alert.Outcome]int{alert.OutcomeStarted: 2, alert.OutcomeUnmapped: 1}, d.outcomes(t))

	removed, err := d.RemoveAlerts(bounded(t), d.now.AddDate(0, 0, 1))
	require.NoError(t, err)
	require.EqualValues(t, 3, removed)
}

func testResolvedAlerts(t *testing.T, database backend) {
	open := database(t)
	d := newAlertDesk(t, open(), alert.Rules{MaxTier: map[string]escalation.Tier{"info": 1, "warning": 2}})
	d.send(t, alert.Firing, alertOf("s1", "Down"))
	d.send(t, alert.Resolved, alertOf("s1", "Down"))
	require.Empty(t, d.plan(t, time.Hour).Chains)
	require.Equal(t, map[alert.Outcome]int{alert.OutcomeWithdrawn: 1}, d.outcomes(t))

	one, two := alertOf("s2", "Slow"), alertOf("s2", "Down")
	one.Severity, two.Severity = "info", "warning"
	d.send(t, alert.Firing, one, two)
	planned := d.plan(t, time.Minute)
	require.Equal(t, escalation.TierSafeRepair, planned.Chains[0].MaxTier, "the highest that one of them permits")
	require.NoError(t, d.AlertChainStarted(bounded(t), "chain-1", d.now))
	claimed := d.send(t, alert.Resolved, one, two)
	require.True(t, claimed[0].CheckDue)
	require.Empty(t, d.plan(t, time.Minute).Chains, "while the chain runs, it looks itself")
	require.NoError(t, d.AlertChainsEnded(bounded(t), []string{"chain-1"}, d.now))
	require.Empty(t, d.plan(t, time.Minute).Chains, "without an open incident there is nothing to check")
	checked, err := d.Alert(bounded(t), claimed[0].Number)
	require.NoError(t, err)
	require.False(t, checked.CheckDue)
}

// testAlertStorm sends 500 alerts of 20 services, twice, to two hosts with a limit.
func testAlertStorm(t *testing.T, database backend) {
	open := database(t)
	rules := alert.Rules{PerHour: 12, PerDay: 15}
	a, b := newAlertDesk(t, open(), rules), newAlertDesk(t, open(), rules)
	b.ids = 1_000
	for range 2 {
		var storm []alert.Alert
		for i := range 500 {
			storm = append(storm, alertOf(fmt.Sprintf("s%d", i%20), fmt.Sprintf("alert %d", i)))
		}
		a.send(t, alert.Firing, storm[:300]...)
		b.send(t, alert.Firing, storm[200:]...)
	}
	a.now, b.now = noon.Add(30*time.Second), noon.Add(30*time.Second)
	var wait sync.WaitGroup
	chains := make([]int, 2)
	for i, d := range []*alertDesk{a, b} {
		wait.Go(func() { chains[i] = len(d.plan(t, 0).Chains) })
	}
	wait.Wait()
	require.Equal(t, 12, chains[0]+chains[1], "the limit of the hour counts over both hosts")
	require.Equal(t, map[alert.Outcome]int{alert.OutcomeStarted: 12 * 25, alert.OutcomeWaiting: 8 * 25}, a.outcomes(t))
	limited := a.plan(t, time.Minute)
	require.Len(t, limited.Limited, 8*25)
	require.Len(t, a.plan(t, time.Hour).Chains, 3, "then the limit of the day")
	waiting, err := a.Alerts(bounded(t), store.AlertFilter{Outcome: alert.OutcomeWaiting, Limit: 1})
	require.NoError(t, err)
	require.Equal(t, "alerts have started 15 chains within a day, and max_per_day is 15", waiting[0].Reason)
	require.Len(t, a.plan(t, 24*time.Hour).Chains, 5, "nothing is lost")
	require.Equal(t, map[alert.Outcome]int{alert.OutcomeStarted: 500}, a.outcomes(t))
}
