package escalation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/claudeops/claudeops/internal/escalation"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func limit(text string) escalation.Limit {
	parsed, err := escalation.ParseLimit(text)
	if err != nil {
		panic(err)
	}
	return parsed
}

// usual returns cooldowns with exceptions for two services.
func usual() escalation.Cooldowns {
	often, never, unlimited := limit("4/30h"), limit("0/24h"), escalation.Limit{}
	return escalation.Cooldowns{
		Restarts: limit("2/4h"), Redeployments: limit("1/24h"), MaxWait: escalation.Duration(6 * time.Hour),
		Services: map[string]escalation.ServiceCooldowns{
			"jellyfin": {Restarts: &often},
			"postgres": {Restarts: &unlimited, Redeployments: &never},
		},
	}
}

// entry returns an action on a service, some hours before noon.
func entry(service string, kind escalation.ActionKind, hours float64) escalation.LedgerEntry {
	return escalation.LedgerEntry{Service: service, Kind: kind, At: noon.Add(-time.Duration(hours * float64(time.Hour)))}
}

func TestCooldownLimits(t *testing.T) {
	t.Parallel()
	for service, want := range map[string][2]string{
		"nginx": {"2/4h", "1/24h"}, "jellyfin": {"4/30h", "1/24h"}, "postgres": {"none", "0/24h"}, "JellyFin": {"4/30h", "1/24h"},
	} {
		restarts, redeployments := usual().Limits(service)
		require.Equal(t, want, [2]string{restarts.String(), redeployments.String()}, service)
	}
	require.Equal(t, 30*time.Hour, usual().Window())
	require.Zero(t, escalation.Cooldowns{}.Window())
}

func TestStates(t *testing.T) {
	t.Parallel()
	states := usual().States([]escalation.LedgerEntry{
		entry("nginx", escalation.ActionRestart, 1), entry("nginx", escalation.ActionRestart, 3), entry("nginx", escalation.ActionRestart, 5),
		entry("nginx", escalation.ActionRedeployment, 25), entry("postgres", escalation.ActionRestart, 1), entry("apache", escalation.ActionOther, 1),
	}, []string{"nginx", "caddy"}, noon)
	var names []string
	for _, state := range states {
		names = append(names, state.Service)
	}
	require.Equal(t, []string{"apache", "caddy", "nginx", "postgres"}, names, "those named and those with an entry, by name")

	nginx := states[2]
	require.Equal(t, escalation.Use{Used: 2, Limit: limit("2/4h"), FreeAt: noon.Add(time.Hour), Last: noon.Add(-time.Hour)}, nginx.Restarts)
	require.True(t, nginx.Redeployments.Free)
	require.Equal(t, noon.Add(-25*time.Hour), nginx.Redeployments.Last)
	require.True(t, states[3].Restarts.Free, "postgres has no limit on restarts")
	require.False(t, states[3].Redeployments.Free)
	require.Zero(t, states[3].Redeployments.FreeAt, "and is never redeployed")
	for _, state := range states[:2] {
		require.True(t, state.Restarts.Free && state.Redeployments.Free, "another action counts against nothing")
	}
}

// TestRecentStates checks that an admission lists the requested services and, of the others, those that were repaired
// last.
func TestRecentStates(t *testing.T) {
	t.Parallel()
	state := func(number int) escalation.ServiceState {
		repaired := noon.Add(-time.Duration(number) * time.Minute)
		one := escalation.ServiceState{Service: fmt.Sprintf("service %03d", number), Restarts: escalation.Use{Last: repaired}}
		if number%2 == 0 {
			one.Restarts.Last, one.Redeployments.Last = repaired.Add(-time.Hour), repaired
		}
		return one
	}
	var states []escalation.ServiceState
	for number := range escalation.MaxOtherStates + 20 {
		states = append(states, state(number))
	}
	few := states[:escalation.MaxOtherStates]
	require.Equal(t, few, escalation.RecentStates(few, nil))

	old := states[escalation.MaxOtherStates+15]
	got := escalation.RecentStates(states, []string{strings.ToUpper(old.Service), states[0].Service})
	require.Equal(t, append(slices.Clone(states[:escalation.MaxOtherStates+1]), old), got)
}

// TestStatesCompareNames checks that entries and limits count for a service however its name is spelled.
func TestStatesCompareNames(t *testing.T) {
	t.Parallel()
	entries := []escalation.LedgerEntry{
		entry("Nginx", escalation.ActionRestart, 2), entry(" nginx ", escalation.ActionRestart, 1), entry("TV", escalation.ActionRestart, 1),
		entry("tv", escalation.ActionRestart, 1),
	}
	states := usual().States(entries, []string{"NGINX", "JellyFin"}, noon)
	require.Len(t, states, 3)
	require.Equal(t, []string{"JellyFin", "NGINX", "TV"}, []string{states[0].Service, states[1].Service, states[2].Service})
	require.Equal(t, "4/30h", states[0].Restarts.Limit.String())
	require.Equal(t, 2, states[1].Restarts.Used)
	require.Equal(t, 2, states[2].Restarts.Used)
	require.NotNil(t, usual().Refuse(entries, restarts("nginx", 1), noon))
	require.NotNil(t, usual().Refuse(entries[:1], append(restarts("nginx", 1), restarts("NGINX", 1)...), noon))
}

// TestWindowIsFarEnoughBack drops the entries before the window and checks that the states stay the same. Only the
// time of the last event may differ.
func TestWindowIsFarEnoughBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cooldowns, services := usual(), []string{"nginx", "jellyfin", "postgres"}
		var all, recent []escalation.LedgerEntry
		for range rapid.IntRange(0, 15).Draw(t, "entries") {
			entry := entry(rapid.SampledFrom(services).Draw(t, "service"),
				rapid.SampledFrom([]escalation.ActionKind{escalation.ActionRestart, escalation.ActionRedeployment}).Draw(t, "kind"),
				float64(rapid.IntRange(-2, 60).Draw(t, "hours")))
			all = append(all, entry)
			if entry.At.After(noon.Add(-cooldowns.Window())) {
				recent = append(recent, entry)
			}
		}
		whole, part := cooldowns.States(all, services, noon), cooldowns.States(recent, services, noon)
		for i := range whole {
			whole[i].Restarts.Last, whole[i].Redeployments.Last = time.Time{}, time.Time{}
			part[i].Restarts.Last, part[i].Redeployments.Last = time.Time{}, time.Time{}
		}
		require.Equal(t, whole, part)
	})
}
