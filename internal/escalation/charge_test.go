package escalation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/claudeops/claudeops/internal/escalation"
)

func restarts(service string, count int) []escalation.CallAction {
	return slices.Repeat([]escalation.CallAction{{Kind: escalation.ActionRestart, Service: service}}, count)
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	redeploy := func(service string) escalation.CallAction {
		return escalation.CallAction{Kind: escalation.ActionRedeployment, Service: service}
	}
	once := []escalation.LedgerEntry{entry("nginx", escalation.ActionRestart, 1)}
	twice := append([]escalation.LedgerEntry{entry("nginx", escalation.ActionRestart, 3.5)}, once...)
	for name, tt := range map[string]struct {
		entries []escalation.LedgerEntry
		actions []escalation.CallAction
		want    string
	}{
		"nothing was done": {nil, restarts("nginx", 1), ""},
		"one is left":      {once, restarts("nginx", 1), ""},
		"none is left": {
			twice, restarts("nginx", 1),
			"the cooldown of nginx does not allow a restart now: the limit over all chains is 2 within 4h, and the ledger has 2; " +
				"the next one is allowed at 2026-03-01T12:30:00Z, in 30m",
		},
		"one is left, and two are wanted": {
			once, restarts("nginx", 2),
			"the cooldown of nginx does not allow 2 restarts in one call now: the limit over all chains is 2 within 4h, and the ledger has 1; " +
				"so many are allowed at 2026-03-01T15:00:00Z, in 3h",
		},
		"two at once":            {nil, restarts("nginx", 2), ""},
		"more than ever allowed": {nil, restarts("nginx", 3), "the cooldown of nginx never allows 3 restarts in one call: the limit is 2 within 4h"},
		"forbidden":              {nil, []escalation.CallAction{redeploy("postgres")}, "the policy allows no redeployment of postgres"},
		"no limit":               {nil, restarts("postgres", 9), ""},
		"a limit of its own":     {nil, restarts("jellyfin", 4), ""},
		"another service":        {twice, restarts("caddy", 2), ""},
		"another kind":           {twice, []escalation.CallAction{redeploy("nginx")}, ""},
		"the second of two": {
			twice, append(restarts("caddy", 1), restarts("nginx", 1)...),
			"the cooldown of nginx does not allow a restart now: the limit over all chains is 2 within 4h, and the ledger has 2; " +
				"the next one is allowed at 2026-03-01T12:30:00Z, in 30m",
		},
		"what has no cooldown": {twice, []escalation.CallAction{{Kind: escalation.ActionOther, Service: "nginx"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusal := usual().Refuse(tt.entries, tt.actions, noon)
			if tt.want == "" {
				require.Nil(t, refusal)
				return
			}
			require.Equal(t, tt.want, refusal.Reason())
		})
	}
}

// TestRefuseRoundsUp checks that the call is allowed at the second that the refusal names.
func TestRefuseRoundsUp(t *testing.T) {
	t.Parallel()
	now := noon.Add(1700 * time.Millisecond)
	entries := slices.Repeat([]escalation.LedgerEntry{entry("nginx", escalation.ActionRestart, 1)}, 2)
	entries[0].At, entries[1].At = noon.Add(-time.Hour+300*time.Millisecond), noon
	require.Contains(t, usual().Refuse(entries, restarts("nginx", 1), now).Reason(), "at 2026-03-01T15:00:01Z, in 3h")
}

// TestRefuseNamesTheTime repeats each refused call at the time named by its refusal, and checks that a series
// of admitted calls keeps the limit.
func TestRefuseNamesTheTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cooldowns := escalation.Cooldowns{Restarts: escalation.Limit{
			Max: rapid.IntRange(1, 4).Draw(t, "max"), Window: escalation.Duration(rapid.IntRange(1, 9).Draw(t, "hours")) * escalation.Duration(time.Hour),
		}}
		var entries []escalation.LedgerEntry
		now := noon
		for range rapid.IntRange(1, 12).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.IntRange(0, 180).Draw(t, "minutes")) * time.Minute)
			actions := restarts("nginx", rapid.IntRange(1, 4).Draw(t, "actions"))
			if refusal := cooldowns.Refuse(entries, actions, now); refusal != nil {
				if len(actions) > cooldowns.Restarts.Max {
					require.Zero(t, refusal.Use.FreeAt)
					continue
				}
				require.True(t, refusal.Use.FreeAt.After(now))
				require.NotNil(t, cooldowns.Refuse(entries, actions, refusal.Use.FreeAt.Add(-time.Nanosecond)))
				now = refusal.Use.FreeAt
				require.Nil(t, cooldowns.Refuse(entries, actions, now))
			}
			for range actions {
				entries = append(entries, escalation.LedgerEntry{Service: "nginx", Kind: escalation.ActionRestart, At: now})
			}
			recent := 0
			for _, entry := range entries {
				if entry.At.After(now.Add(-cooldowns.Restarts.Window.Std())) {
					recent++
				}
			}
			require.LessOrEqual(t, recent, cooldowns.Restarts.Max)
		}
	})
}
