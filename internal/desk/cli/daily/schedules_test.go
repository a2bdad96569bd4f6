package daily

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

func TestScheduleMisuse(t *testing.T) {
	t.Parallel()
	create := func(flags ...string) []string { return append([]string{"schedule", "create", "hourly"}, flags...) }
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no command":         {[]string{"schedule"}, "say what to do with schedules: create, update, list"},
		"unknown command":    {[]string{"schedule", "stop", "x"}, `unknown command "stop"`},
		"no ID":              {[]string{"schedule", "pause"}, "ID is missing: write `claudeops schedule pause ID`"},
		"odd ID":             {[]string{"schedule", "create", "../x", "--every", "1h"}, `schedule ID "../x" must begin with a letter`},
		"neither":            {create(), "give either --every or --cron"},
		"both":               {create("--every", "1h", "--cron", "@daily"), "give either --every or --cron"},
		"no duration":        {create("--every", "often"), `--every is "often"; it must be a duration with its unit`},
		"negative interval":  {create("--every=-1h"), "--every -1h0m0s must be one or more whole seconds"},
		"short interval":     {create("--every", "10ms"), "--every 10ms must be one or more whole seconds"},
		"empty cron":         {create("--cron", " "), "--cron must not be empty"},
		"long offset":        {create("--every", "1h", "--offset", "1h"), "--offset 1h0m0s must be whole seconds, and less than --every"},
		"lonely offset":      {create("--cron", "@daily", "--offset", "1m"), "--offset goes with --every only"},
		"lonely zone":        {create("--every", "1h", "--timezone", "Europe/Berlin"), "--timezone goes with --cron or --hours only"},
		"negative jitter":    {create("--every", "1h", "--jitter=-1s"), "--jitter -1s must not be negative"},
		"unknown overlap":    {create("--every", "1h", "--overlap", "queue"), `--overlap "queue" is none of skip, buffer_one, buffer_all, cancel_other, allow_all` + "\n"},
		"trigger overlap":    {[]string{"schedule", "trigger", "x", "--overlap", "queue"}, `--overlap "queue" is none of skip`},
		"terminate":          {create("--every", "1h", "--overlap", "terminate_other"), "--overlap terminate_other would leave the chain of the terminated cycle at work beside the new one; cancel_other"},
		"trigger terminate":  {[]string{"schedule", "trigger", "x", "--overlap", "terminate_other"}, "--overlap terminate_other would leave"},
		"pause unwatched":    {create("--every", "1h", "--overlap", "allow_all", "--pause-on-failure"), "--pause-on-failure is of no use with --overlap allow_all"},
		"no interval":        {create("--every", "0s"), "--every 0s must be one or more whole seconds"},
		"part of a second":   {create("--every", "1500ms"), "--every 1.5s must be one or more whole seconds"},
		"negative offset":    {create("--every", "1h", "--offset=-1m"), "--offset -1m0s must be whole seconds, and less than --every"},
		"one empty cron":     {create("--cron", "@daily", "--cron", ""), "--cron must not be empty"},
		"no jitter":          {create("--every", "1h", "--jitter", "some"), `--jitter is "some"; it must be a duration with its unit`},
		"negative window":    {create("--every", "1h", "--catchup-window=-1h"), "--catchup-window -1h0m0s must be at least 10s"},
		"no window":          {create("--every", "1h", "--catchup-window", "0s"), "--catchup-window 0s must be at least 10s"},
		"short window":       {create("--every", "1h", "--catchup-window", "1s"), "--catchup-window 1s must be at least 10s"},
		"empty service":      {create("--every", "1h", "--service", ""), "services: service 1 has a blank name"},
		"tier":               {create("--every", "1h", "--tier", "4"), `--tier is "4"; it must be 1, 2 or 3`},
		"model of no tier":   {create("--every", "1h", "--model", "opus=2"), "--model opus=2 names no tier"},
		"an option as model": {create("--every", "1h", "--model", "tier1=-x"), `"-x" for tier 1 is not the name of a model`},
		"blank service":      {create("--every", "1h", "--service", " "), "service 1 has a blank name"},
		"hidden actor":       {create("--every", "1h", "--actor", "an\u200bna"), "actor has characters that cannot be printed"},
		"lonely hours":       {create("--cron", "@daily", "--hours", "7-22"), "--hours goes with --every, and neither with --cron nor with --offset"},
		"one hour":           {create("--every", "1h", "--hours", "7"), `--hours is "7"; it must be two hours of the day, such as 7-22`},
		"odd hours":          {create("--every", "45m", "--hours", "7-22"), "--every is 45m0s; it must divide an hour"},
		"update to both":     {[]string{"schedule", "update", "hourly", "--every", "1h", "--cron", "@daily"}, "give either --every or --cron"},
		"update to paused":   {[]string{"schedule", "update", "hourly", "--paused"}, "--paused is for a new schedule"},
		"a conversation":     {create("--every", "1h", "--resume-from", "x"), "unknown flag: --resume-from"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := starter(t, clitest.Environment(t), tt.args...)
			require.Equal(t, program.ExitUsage, got.Code, got.Stderr)
			require.Contains(t, got.Stderr, tt.want)
			require.Empty(t, got.Stdout)
		})
	}
}

// TestPauseOnFailureSaysWhatItIsWorth checks that the help of --pause-on-failure explains the effect of gates: a
// cycle whose chain waits at a gate does not count as failed.
func TestPauseOnFailureSaysWhatItIsWorth(t *testing.T) {
	t.Parallel()
	help := starter(t, clitest.Environment(t), "schedule", "create", "--help")
	require.Equal(t, program.ExitOK, help.Code, help.Stderr)
	require.Contains(t, help.Stdout, "waits at its gate, of which people are told, and its cycle ends well")
	require.Contains(t, help.Stdout, "CLAUDEOPS_GATE_TIMEOUT=0s")
}
