package alert_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/alert"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func catalogOf(t *testing.T) *escalation.Catalog {
	t.Helper()
	catalog, err := escalation.NewCatalog([]escalation.Service{
		{Name: "shop", Aliases: []string{"shop-web-1"}, Alerts: []escalation.AlertMatcher{
			{"alertname": "~Shop.*"}, {"team": "shop", "severity": "critical"},
		}},
		{Name: "db"},
	})
	require.NoError(t, err)
	return catalog
}

func rulesOf(t *testing.T, rules alert.Rules) alert.Rules {
	t.Helper()
	complete, err := rules.Complete(catalogOf(t))
	require.NoError(t, err)
	return complete
}

func TestService(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, alert.Rules{
		Ignore:  []escalation.AlertMatcher{{"alertname": "Watchdog"}},
		MaxTier: map[string]escalation.Tier{"Info": 1},
	})
	for name, c := range map[string]struct {
		labels  map[string]string
		service string
		outcome alert.Outcome
		wait    time.Duration
		maxTier escalation.Tier
	}{
		"a pattern of a matcher":      {map[string]string{"alertname": "ShopDown"}, "shop", alert.OutcomeWaiting, 30 * time.Second, 0},
		"a pattern is for the whole":  {map[string]string{"alertname": "NoShop"}, "", alert.OutcomeUnmapped, 30 * time.Second, 0},
		"every label of a matcher":    {map[string]string{"team": "shop"}, "", alert.OutcomeUnmapped, 30 * time.Second, 0},
		"critical alerts do not wait": {map[string]string{"team": "shop", "severity": "critical"}, "shop", alert.OutcomeWaiting, 0, 0},
		"an alias":                    {map[string]string{"container": "Shop-Web-1"}, "shop", alert.OutcomeWaiting, 30 * time.Second, 0},
		"a severity lowers the tier":  {map[string]string{"service": "db", "severity": "INFO"}, "db", alert.OutcomeWaiting, 30 * time.Second, 1},
		"an ignored one":              {map[string]string{"alertname": "Watchdog", "service": "db"}, "db", alert.OutcomeFiltered, 30 * time.Second, 0},
		"a tier chosen by the sender": {map[string]string{"service": "db", "tier": "3", "max_tier": "3"}, "db", alert.OutcomeWaiting, 30 * time.Second, 0},
		"no labels":                   {nil, "", alert.OutcomeUnmapped, 30 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ruling := rules.Rule(catalogOf(t), alert.Alert{Labels: c.labels}.Bounded(noon))
			require.Equal(t, c.service, ruling.Service)
			require.Equal(t, c.outcome, ruling.Outcome, ruling.Reason)
			require.Equal(t, c.wait, ruling.Wait)
			require.Equal(t, c.maxTier, ruling.MaxTier)
			require.Equal(t, c.outcome == alert.OutcomeWaiting, ruling.Reason == "")
		})
	}
	byDefault := rulesOf(t, alert.Rules{Default: "db"})
	require.Equal(t, "db", byDefault.Rule(catalogOf(t), alert.Alert{}).Service)
	unmapped := rulesOf(t, alert.Rules{Unmapped: true})
	require.Equal(t, alert.OutcomeWaiting, unmapped.Rule(catalogOf(t), alert.Alert{}).Outcome)
}

func TestRulesRefused(t *testing.T) {
	t.Parallel()
	template := &alert.Template{Identity: []string{"id"}}
	for want, rules := range map[string]alert.Rules{
		"wait must be between 1s and 1h":         {Wait: time.Millisecond},
		"again must be at least 1m":              {Again: time.Second},
		`resolved is "trust", and must be`:       {Resolved: "trust"},
		"must be positive":                       {PerHour: -1},
		`default names "tv", and no service`:     {Default: "tv"},
		`max_tier: "info" must have the tier`:    {MaxTier: map[string]escalation.Tier{"info": 4}},
		"ignore: a matcher is empty":             {Ignore: []escalation.AlertMatcher{{}}},
		"ignore: x: error parsing regexp":        {Ignore: []escalation.AlertMatcher{{"x": "~("}}},
		`the name "am" is there twice`:           {Sources: []alert.Source{{Name: "am", Kind: alert.Grafana}, {Name: "am", Kind: alert.Grafana}}},
		`name "a/b" must be a lower-case`:        {Sources: []alert.Source{{Name: "a/b", Kind: alert.Grafana}}},
		`kind is "nagios", and must be one of`:   {Sources: []alert.Source{{Name: "a", Kind: "nagios"}}},
		"the kind template needs a template":     {Sources: []alert.Source{{Name: "a", Kind: alert.Templated}}},
		"and no other kind has one":              {Sources: []alert.Source{{Name: "a", Kind: alert.Grafana, Template: template}}},
		"secret_file is for grafana":             {Sources: []alert.Source{{Name: "a", Kind: alert.UptimeKuma, SecretFile: "/x"}}},
		"signature_header and timestamp_header":  {Sources: []alert.Source{{Name: "a", Kind: alert.PagerDuty, SignatureHeader: "X"}}},
		"template.identity must name at least":   {Sources: []alert.Source{{Name: "a", Kind: alert.Templated, Template: &alert.Template{}}}},
		"template.status and template.resolved ": {Sources: []alert.Source{{Name: "a", Kind: alert.Templated, Template: &alert.Template{Identity: []string{"id"}, Status: "s"}}}},
	} {
		_, err := rules.Complete(catalogOf(t))
		require.ErrorContains(t, err, want)
	}
}

// delivery is a delivery of one alert at a minute after noon.
type delivery struct {
	minute int
	status alert.Status
	starts int // minute; -1 for none
}

func TestEpisodes(t *testing.T) {
	t.Parallel()
	const none = -1
	for name, c := range map[string]struct {
		deliveries []delivery
		// startedAt is the minute at which a chain is started for what waits; 0 for never.
		startedAt int
		outcomes  []alert.Outcome
		received  []int
	}{
		"a repeated delivery": {
			[]delivery{{0, alert.Firing, 0}, {1, alert.Firing, 0}, {2, alert.Firing, 0}},
			0,
			[]alert.Outcome{alert.OutcomeWaiting},
			[]int{3},
		},
		"resolved before a chain starts": {
			[]delivery{{0, alert.Firing, 0}, {1, alert.Resolved, 0}, {2, alert.Resolved, 0}},
			0,
			[]alert.Outcome{alert.OutcomeWithdrawn},
			[]int{3},
		},
		"resolved after a chain started": {
			[]delivery{{0, alert.Firing, 0}, {5, alert.Resolved, 0}},
			1,
			[]alert.Outcome{alert.OutcomeStarted},
			[]int{2},
		},
		"a new start after the end": {
			[]delivery{{0, alert.Firing, 0}, {5, alert.Resolved, 0}, {9, alert.Firing, 8}},
			1,
			[]alert.Outcome{alert.OutcomeStarted, alert.OutcomeWaiting},
			[]int{2, 1},
		},
		"a firing that was delayed on the way": {
			[]delivery{{0, alert.Firing, 0}, {5, alert.Resolved, 0}, {9, alert.Firing, 0}},
			1,
			[]alert.Outcome{alert.OutcomeStarted},
			[]int{3},
		},
		"a source without starts": {
			[]delivery{{0, alert.Firing, none}, {1, alert.Firing, none}, {5, alert.Resolved, none}, {9, alert.Firing, none}},
			2,
			[]alert.Outcome{alert.OutcomeStarted, alert.OutcomeWaiting},
			[]int{3, 1},
		},
		"a source that never says resolved": {
			[]delivery{{0, alert.Firing, 0}, {60, alert.Firing, 0}, {120, alert.Firing, 119}},
			1,
			[]alert.Outcome{alert.OutcomeStarted, alert.OutcomeWaiting},
			[]int{2, 1},
		},
		"it still fires a day after the look": {
			[]delivery{{0, alert.Firing, 0}, {60, alert.Firing, 0}, {2_000, alert.Firing, 0}},
			1,
			[]alert.Outcome{alert.OutcomeWaiting},
			[]int{3},
		},
		"a new start before a chain started": {
			[]delivery{{0, alert.Firing, 0}, {1, alert.Firing, 1}},
			0,
			[]alert.Outcome{alert.OutcomeWithdrawn, alert.OutcomeWaiting},
			[]int{1, 1},
		},
		"resolved, and never seen firing": {
			[]delivery{{0, alert.Resolved, 0}}, 0, []alert.Outcome{alert.OutcomeFiltered}, []int{1},
		},
		"two replicas with different starts": {
			[]delivery{{2, alert.Firing, 1}, {3, alert.Firing, 0}, {4, alert.Firing, 1}, {5, alert.Firing, 0}},
			0,
			[]alert.Outcome{alert.OutcomeWaiting},
			[]int{4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := rulesOf(t, alert.Rules{})
			episodes := receive(t, rules, c.deliveries, c.startedAt)
			var outcomes []alert.Outcome
			var received []int
			for _, e := range episodes {
				outcomes, received = append(outcomes, e.Outcome), append(received, e.Received)
				require.Equal(t, e.Outcome == alert.OutcomeWaiting, !e.DueAt.IsZero(), "what waits has a time")
				require.Equal(t, name == "resolved after a chain started" || e.Outcome == alert.OutcomeStarted &&
					name != "a source that never says resolved", e.CheckDue, "only a claim after a look is checked")
			}
			require.Equal(t, c.outcomes, outcomes)
			require.Equal(t, c.received, received)
		})
	}
}

// receive applies deliveries to one alert, and starts a chain at a minute.
func receive(t *testing.T, rules alert.Rules, deliveries []delivery, startedAt int) []alert.Episode {
	t.Helper()
	var episodes []alert.Episode
	for _, d := range deliveries {
		now := noon.Add(time.Duration(d.minute) * time.Minute)
		if n := len(episodes); n > 0 && startedAt > 0 && d.minute >= startedAt && episodes[n-1].LookedAt.IsZero() &&
			episodes[n-1].Outcome == alert.OutcomeWaiting {
			last := &episodes[n-1]
			last.Outcome, last.LookedAt, last.DueAt = alert.OutcomeStarted, noon.Add(time.Duration(startedAt)*time.Minute), time.Time{}
		}
		a := alert.Alert{Source: "am", Identity: "1", Status: d.status, Labels: map[string]string{"service": "db"}}
		if d.starts >= 0 {
			a.StartsAt = noon.Add(time.Duration(d.starts) * time.Minute)
		}
		var latest *alert.Episode
		if len(episodes) > 0 {
			latest = &episodes[len(episodes)-1]
		}
		changed := rules.Receive(catalogOf(t), latest, a.Bounded(now), now)
		for _, e := range changed {
			if e.Number == 0 {
				e.Number = int64(len(episodes) + 1)
				episodes = append(episodes, e)
			} else {
				episodes[e.Number-1] = e
			}
		}
	}
	return episodes
}

func TestDoubtfulResolved(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, alert.Rules{})
	firing := alert.Episode{Alert: alert.Alert{Status: alert.Firing}, Outcome: alert.OutcomeStarted}
	changed := rules.Receive(catalogOf(t), &firing, alert.Alert{Status: alert.Resolved, Doubt: "its data source is away"}, noon)
	require.Len(t, changed, 1)
	require.Equal(t, alert.Firing, changed[0].Status)
	require.False(t, changed[0].CheckDue)
	require.Contains(t, changed[0].Reason, "its data source is away")
}

// TestAnyDeliveries checks that every delivery is counted once, that starts only grow, and that what waits has a time.
func TestAnyDeliveries(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, alert.Rules{})
	for seed := range uint64(300) {
		draw := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test that can be repeated
		var deliveries []delivery
		minute := 0
		for range draw.IntN(20) {
			minute += draw.IntN(200)
			status := alert.Firing
			if draw.IntN(3) == 0 {
				status = alert.Resolved
			}
			deliveries = append(deliveries, delivery{minute, status, draw.IntN(20) - 1})
		}
		episodes, received := receive(t, rules, deliveries, 1+draw.IntN(10)), 0
		for i, e := range episodes {
			received += e.Received
			require.Equal(t, e.Outcome == alert.OutcomeWaiting, !e.DueAt.IsZero(), "seed %d", seed)
			require.Equal(t, e.Status == alert.Resolved, !e.ResolvedAt.IsZero(), "seed %d", seed)
			if i > 0 {
				require.True(t, e.StartsAt.After(episodes[i-1].StartsAt), "seed %d", seed)
				require.Equal(t, alert.Resolved, episodes[i-1].Status, "seed %d: only the latest fires", seed)
			}
		}
		require.Equal(t, len(deliveries), received, "seed %d", seed)
	}
}

func TestBounded(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"severity": " Critical\n"}
	for i := range 10_000 {
		labels[fmt.Sprintf("label%05d", i)] = strings.Repeat("x", 10_000)
	}
	a := alert.Alert{Labels: labels, Annotations: map[string]string{"a\nb": "1\x1b[31m\n2"}, StartsAt: noon.AddDate(200, 0, 0)}.Bounded(noon)
	require.Len(t, a.Labels, 50)
	require.Len(t, []rune(a.Labels["label00000"]), 300)
	require.Len(t, a.Identity, 32, "a digest of the labels")
	require.True(t, a.StartsAt.IsZero(), "a start in the far future would make all later ones old")
	require.NotContains(t, a.Annotations["a b"], "\n")
	require.NotContains(t, a.Annotations["a b"], "\x1b")
	require.Equal(t, alert.Firing, a.Status)
	same := alert.Alert{Labels: labels}.Bounded(noon)
	require.Equal(t, a.Identity, same.Identity)
}
