package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

func TestGatesOfTheDefaults(t *testing.T) {
	t.Parallel()
	policy := load(t).Policy()
	require.Equal(t, escalation.GatePolicy{
		Timeout: escalation.Duration(72 * time.Hour), OnTimeout: escalation.GateAbort, OnHealed: escalation.HealedClose,
		Remind: []escalation.Duration{escalation.Duration(time.Hour), escalation.Duration(6 * time.Hour), escalation.Duration(24 * time.Hour)},
	}, policy.Gate)
}

func TestGatesAsConfigured(t *testing.T) {
	t.Parallel()
	policy := load(t, "CLAUDEOPS_GATE_TIMEOUT=2h", "CLAUDEOPS_GATE_REMIND= 30m , 1h30m", "CLAUDEOPS_GATE_ON_TIMEOUT=fix",
		"CLAUDEOPS_GATE_ON_HEALED=keep", "CLAUDEOPS_GATE_APPROVERS=Anna, Ben Smith,", "CLAUDEOPS_GATE_FOUR_EYES=true").Policy()
	require.Equal(t, escalation.GatePolicy{
		Timeout: escalation.Duration(2 * time.Hour), OnTimeout: escalation.GateFix, OnHealed: escalation.HealedKeep,
		Remind:    []escalation.Duration{escalation.Duration(30 * time.Minute), escalation.Duration(90 * time.Minute)},
		Approvers: []string{"Anna", "Ben Smith"}, FourEyes: true,
	}, policy.Gate)
	require.Empty(t, load(t, "CLAUDEOPS_GATE_REMIND=none").Policy().Gate.Remind)
	require.Zero(t, load(t, "CLAUDEOPS_GATE_TIMEOUT=0s").Policy().Gate.Timeout)
	load(t, "CLAUDEOPS_GATE_TIMEOUT=10m") // the default reminders come after that timeout; this is allowed
}

func TestGatesThatCannotBe(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"GATE_TIMEOUT=-1h":        `CLAUDEOPS_GATE_TIMEOUT is "-1h"; it must be 0s (no gates) or more`,
		"GATE_REMIND=1h,soon":     `CLAUDEOPS_GATE_REMIND is "1h,soon"; it must be durations with their units, separated by commas, such as 1h,6h, or be none`,
		"GATE_REMIND=6h,1h":       `CLAUDEOPS_GATE_REMIND is "6h,1h"; it must list durations above zero that rise, and 1h comes after 6h`,
		"GATE_REMIND=1h,72h":      `CLAUDEOPS_GATE_REMIND is "1h,72h"; it must list durations below CLAUDEOPS_GATE_TIMEOUT, which is 72h`,
		"GATE_ON_TIMEOUT=go":      `CLAUDEOPS_GATE_ON_TIMEOUT is "go"; it must be abort or fix`,
		"GATE_APPROVERS=a\x1b[2J": "it must be names of people, separated by commas, of at most 200 printable characters each",
		"GATE_APPROVERS=,":        `CLAUDEOPS_GATE_APPROVERS is ","; it must name at least one person; leave it unset if everybody may answer`,
		"GATE_APPROVERS= , ,":     "it must name at least one person; leave it unset if everybody may answer",
		"GATE_FOUR_EYES=maybe":    `CLAUDEOPS_GATE_FOUR_EYES is "maybe"; it must be true or false`,
	} {
		problems := problemsOf(t, Prefix+setting)
		require.Len(t, problems, 1, setting)
		require.Contains(t, problems[0].Sentence, want)
	}
}

// FuzzParseDurations checks that the parser does not panic, and that formatting a result with String and parsing it
// again gives the same result.
func FuzzParseDurations(f *testing.F) {
	for _, seed := range []string{"1h,6h,24h", "none", "1h30m", ",,", "-1ns"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseDurations(text)
		if err != nil {
			return
		}
		again, err := parseDurations(list.String())
		require.NoError(t, err)
		require.Equal(t, list, again)
	})
}
