package daily

import (
	"io"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// TestUpdateChangesWhatItSays updates schedules, and compares all of their times and input.
func TestUpdateChangesWhatItSays(t *testing.T) {
	t.Parallel()
	daily := []client.ScheduleCalendarSpec{{Hour: []client.ScheduleRange{{Start: 12}}, Comment: "noon"}}
	ended := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	models := map[escalation.Tier]string{1: "haiku", 2: "opus"}
	for name, c := range map[string]struct {
		flags     []string
		was, want client.ScheduleSpec
		models    map[escalation.Tier]string
	}{
		"another time": {
			[]string{"--cron", "0 3 * * *"},
			client.ScheduleSpec{Calendars: daily, TimeZoneName: "Asia/Tokyo", Jitter: time.Minute, EndAt: ended},
			client.ScheduleSpec{CronExpressions: []string{"0 3 * * * # 0 3 * * *"}, TimeZoneName: "Asia/Tokyo", Jitter: time.Minute, EndAt: ended},
			models,
		},
		"another time with a zone": {
			[]string{"--cron", "CRON_TZ=Asia/Seoul 0 3 * * *"},
			client.ScheduleSpec{Calendars: daily, TimeZoneName: "Asia/Tokyo"},
			client.ScheduleSpec{CronExpressions: []string{"CRON_TZ=Asia/Seoul 0 3 * * * # CRON_TZ=Asia/Seoul 0 3 * * *"}},
			models,
		},
		"hours": {
			[]string{"--every", "30m", "--hours", "7-22", "--timezone", "UTC"},
			client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: 2 * time.Hour}}},
			client.ScheduleSpec{CronExpressions: []string{"*/30 7-21 * * * # */30 7-21 * * *"}, TimeZoneName: "UTC"},
			models,
		},
		"all hours": {
			[]string{"--every", "30m", "--hours", ""},
			client.ScheduleSpec{Calendars: daily, TimeZoneName: "Asia/Tokyo"},
			client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: 30 * time.Minute}}},
			models,
		},
		"another zone": {
			[]string{"--timezone", "Asia/Seoul"},
			client.ScheduleSpec{Calendars: daily, TimeZoneName: "Asia/Tokyo"},
			client.ScheduleSpec{Calendars: daily, TimeZoneName: "Asia/Seoul"},
			models,
		},
		"UTC": {
			[]string{"--timezone", ""}, client.ScheduleSpec{Calendars: daily, TimeZoneName: "Asia/Tokyo"}, client.ScheduleSpec{Calendars: daily}, models,
		},
		"another interval": {
			[]string{"--every", "1h"},
			client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: 2 * time.Hour, Offset: time.Minute}}},
			client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Hour, Offset: time.Minute}}},
			models,
		},
		"no offset": {
			[]string{"--offset", "0s"},
			client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Hour, Offset: time.Minute}}},
			client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Hour}}},
			models,
		},
		"from times to an interval": {
			[]string{"--every", "1h"},
			client.ScheduleSpec{Calendars: daily, TimeZoneName: "Asia/Tokyo", Jitter: time.Minute},
			client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Hour}}, Jitter: time.Minute},
			models,
		},
		"no times": {
			[]string{"--note", "x", "--jitter", "1m"},
			client.ScheduleSpec{Calendars: daily, TimeZoneName: "Asia/Tokyo"},
			client.ScheduleSpec{Calendars: daily, TimeZoneName: "Asia/Tokyo", Jitter: time.Minute},
			models,
		},
		"a third model":    {[]string{"--model", "tier3=x"}, client.ScheduleSpec{}, client.ScheduleSpec{}, map[escalation.Tier]string{1: "haiku", 2: "opus", 3: "x"}},
		"one model fewer":  {[]string{"--model", "tier2="}, client.ScheduleSpec{}, client.ScheduleSpec{}, map[escalation.Tier]string{1: "haiku"}},
		"none that is not": {[]string{"--model", "tier3="}, client.ScheduleSpec{}, client.ScheduleSpec{}, models},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o scheduleOptions
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			o.register(flags)
			require.NoError(t, flags.Parse(c.flags))
			given, err := o.withHours(flags.Changed, []string{"TZ=Asia/Seoul"})
			require.NoError(t, err)
			require.NoError(t, o.check("x", given))
			schedule := client.Schedule{Spec: &c.was, Policy: &client.SchedulePolicies{}, State: &client.ScheduleState{}}
			require.NoError(t, o.change("x", &schedule, given, time.Now()))
			require.Len(t, schedule.Spec.Intervals, len(c.want.Intervals))
			if len(c.want.Intervals) == 0 {
				c.want.Intervals, schedule.Spec.Intervals = nil, nil
			}
			require.Equal(t, &c.want, schedule.Spec)
			said, err := o.Changes(nil)
			require.NoError(t, err)
			input := console.Overlay(workflows.ChainInput{Models: models, Services: []string{"nas"}}, said, flags.Changed)
			require.Equal(t, workflows.ChainInput{Models: c.models, Services: []string{"nas"}}, input)
		})
	}
	for want, c := range map[string]struct {
		flags []string
		was   client.ScheduleSpec
	}{
		"the schedule has an offset of 30m0s, which must be less than --every: give --offset, too": {
			[]string{"--every", "10m"}, client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Hour, Offset: 30 * time.Minute}}},
		},
		"--offset must be less than the interval of the schedule: give --every, too": {[]string{"--offset", "1m"}, client.ScheduleSpec{Calendars: daily}},
		"--timezone is for a schedule with --cron: give --cron, too":                 {[]string{"--timezone", "Asia/Tokyo"}, client.ScheduleSpec{}},
		"schedule x: Temporal refuses it: unknown time zone Mars/Crater":             {[]string{"--timezone", "Mars/Crater"}, client.ScheduleSpec{Calendars: daily}},
		"schedule x: Temporal refuses it: CronString does not have 5-7 fields":       {[]string{"--cron", "every now and then"}, client.ScheduleSpec{}},
	} {
		var o scheduleOptions
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.SetOutput(io.Discard)
		o.register(flags)
		require.NoError(t, flags.Parse(c.flags))
		schedule := client.Schedule{Spec: &c.was, Policy: &client.SchedulePolicies{}, State: &client.ScheduleState{}}
		require.EqualError(t, o.change("x", &schedule, flags.Changed, time.Now()), want)
	}
}
