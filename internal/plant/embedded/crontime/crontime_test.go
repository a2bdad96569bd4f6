package crontime

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
)

// starts returns the local times at which Temporal starts cycles of a schedule between two dates.
func starts(t *testing.T, spec client.ScheduleSpec, from, to string) (times []string) {
	t.Helper()
	zone, err := time.LoadLocation(spec.TimeZoneName)
	require.NoError(t, err)
	var intervals []*schedulepb.IntervalSpec
	for _, i := range spec.Intervals {
		intervals = append(intervals, &schedulepb.IntervalSpec{Interval: durationpb.New(i.Every), Phase: durationpb.New(i.Offset)})
	}
	compiled, err := compile(&schedulepb.ScheduleSpec{
		Interval:           intervals,
		StructuredCalendar: structured(spec.Calendars), ExcludeStructuredCalendar: structured(spec.Skip),
		CronString: spec.CronExpressions, TimezoneName: spec.TimeZoneName,
	})
	require.NoError(t, err)
	begin, err := time.ParseInLocation(time.DateOnly, from, zone)
	require.NoError(t, err)
	end, err := time.ParseInLocation(time.DateOnly, to, zone)
	require.NoError(t, err)
	for at := next(compiled, begin); at.Before(end); at = next(compiled, at.Add(time.Second)) {
		times = append(times, at.In(zone).Format("01-02 15:04:05"))
	}
	return times
}

var marks = Marks{"added", 50 * 365 * 24 * time.Hour}

// TestAmend reads the times of schedules around changes of the clocks, as Temporal reads them.
func TestAmend(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 755_432_785, time.UTC)
	for name, c := range map[string]struct {
		zone, from, to string
		cron           []string
		before, after  []string
	}{
		"the night of the change": {
			"Europe/Berlin", "2026-03-28", "2026-03-31",
			[]string{"30 2 * * *"},
			[]string{"03-28 02:30:00", "03-30 02:30:00"},
			[]string{"03-28 02:30:00", "03-29 03:00:00", "03-30 02:30:00"},
		},
		"in ten years": {
			"Europe/Berlin", "2036-03-29", "2036-04-01",
			[]string{"30 2 * * *"},
			[]string{"03-29 02:30:00", "03-31 02:30:00"},
			[]string{"03-29 02:30:00", "03-30 03:00:00", "03-31 02:30:00"},
		},
		"several times skipped": {
			"Europe/Berlin", "2026-03-29", "2026-03-30", []string{"0,15,45 2 * * *", "59 2 * * *"}, nil, []string{"03-29 03:00:00"},
		},
		"one at the next instant": {
			"Europe/Berlin", "2026-03-29", "2026-03-30", []string{"0 2,3 * * *"}, []string{"03-29 03:00:00"}, []string{"03-29 03:00:00"},
		},
		"not on this date": {
			"Europe/Berlin", "2026-10-25", "2026-10-26", []string{"30 2 24 * *"}, nil, nil,
		},
		"another day of the week": {"Europe/Berlin", "2026-03-29", "2026-03-30", []string{"30 2 * * mon"}, nil, nil},
		"no skipped time":         {"Europe/Berlin", "2026-03-29", "2026-03-30", []string{"30 3 * * *"}, []string{"03-29 03:30:00"}, []string{"03-29 03:30:00"}},
		"midnight": {
			"America/Santiago", "2026-09-05", "2026-09-08",
			[]string{"@daily"},
			[]string{"09-05 00:00:00", "09-07 00:00:00"},
			[]string{"09-05 00:00:00", "09-06 01:00:00", "09-07 00:00:00"},
		},
		"half an hour": {
			"Australia/Lord_Howe", "2026-10-03", "2026-10-06",
			[]string{"15 2 * * *"},
			[]string{"10-03 02:15:00", "10-04 02:45:00", "10-05 02:15:00"},
			[]string{"10-03 02:15:00", "10-04 02:30:00", "10-05 02:15:00"},
		},
		"a time that is shown twice": {
			"America/New_York", "2026-10-31", "2026-11-03",
			[]string{"30 1 * * *"},
			[]string{"10-31 01:30:00", "11-01 01:30:00", "11-01 01:30:00", "11-02 01:30:00"},
			[]string{"10-31 01:30:00", "11-01 01:30:01", "11-02 01:30:00"},
		},
		"several times shown twice, in ten years": {
			"America/New_York", "2036-11-02", "2036-11-03",
			[]string{"0,45 0-2 * * *"},
			[]string{
				"11-02 00:00:00", "11-02 00:45:00", "11-02 01:00:00", "11-02 01:45:00", "11-02 01:00:00", "11-02 01:45:00", "11-02 02:00:00", "11-02 02:45:00",
			},
			[]string{"11-02 00:00:00", "11-02 00:45:00", "11-02 01:00:01", "11-02 01:45:01", "11-02 02:00:00", "11-02 02:45:00"},
		},
		"a time that is shown twice, and starts once": {
			"Europe/Berlin", "2026-10-25", "2026-10-26", []string{"30 2 * * *"}, []string{"10-25 02:30:00"}, []string{"10-25 02:30:01"},
		},
		"a time that is shown twice, and starts an hour late": {
			"Europe/Berlin", "2026-10-25", "2026-10-26",
			[]string{"0,30 2 * * *"},
			[]string{"10-25 02:00:00", "10-25 03:30:00"},
			[]string{"10-25 02:00:01", "10-25 02:30:01"},
		},
		"half an hour twice": {
			"Australia/Lord_Howe", "2026-04-05", "2026-04-06",
			[]string{"15,45 1 * * *"},
			[]string{"04-05 01:15:00", "04-05 01:45:00"},
			[]string{"04-05 01:15:00", "04-05 01:45:01"},
		},
		"an hour of the day before, twice": {
			"America/Santiago", "2026-04-04", "2026-04-05",
			[]string{"15 23 * * *"},
			[]string{"04-04 23:15:00", "04-04 23:15:00"},
			[]string{"04-04 23:15:01"},
		},
		"twice, also in each hour": {
			"America/New_York", "2026-11-01", "2026-11-02",
			[]string{"30 1 1 * *", "30 * 1 * *"},
			nil, nil,
		},
		"half an hour, also in each hour": {
			"Australia/Lord_Howe", "2026-10-04", "2026-10-05",
			[]string{"15 2 * * *", "45 * * * *"},
			nil, nil,
		},
		"UTC": {"UTC", "2026-03-29", "2026-03-30", []string{"30 2 * * *"}, []string{"03-29 02:30:00"}, []string{"03-29 02:30:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := client.ScheduleSpec{TimeZoneName: c.zone, CronExpressions: c.cron}
			if strings.Contains(name, "each hour") { // these starts stay; the schedule of each hour has them
				c.before = starts(t, spec, c.from, c.to)
				c.after = c.before
				if c.zone == "Australia/Lord_Howe" {
					c.after = append([]string{c.before[0], c.before[1], "10-04 02:30:00"}, c.before[2:]...)
				}
			}
			require.Equal(t, c.before, starts(t, spec, c.from, c.to))
			require.NoError(t, Amend(&spec, marks, now))
			require.Equal(t, c.after, starts(t, spec, c.from, c.to))
			amended := spec
			require.NoError(t, Amend(&spec, marks, now))
			require.Equal(t, amended, spec, "amended twice")
			Restore(&spec, marks)
			require.Equal(t, c.before, starts(t, spec, c.from, c.to))
		})
	}
	spec := client.ScheduleSpec{TimeZoneName: "Europe/Berlin", CronExpressions: []string{"30 * * * *"}}
	require.NoError(t, Amend(&spec, marks, now))
	require.Empty(t, spec.Calendars, "it runs in every hour")
	for _, wrong := range []client.ScheduleSpec{{CronExpressions: []string{"30 2 * *"}}, {TimeZoneName: "Europe/Bielefeld"}} {
		require.Error(t, Amend(&wrong, marks, now))
	}
}

// TestLacks looks at a schedule before and after Amend, years later, and at schedules that need nothing.
func TestLacks(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lacks := func(spec client.ScheduleSpec, now time.Time) bool {
		t.Helper()
		found, err := Lacks(spec, marks, now)
		require.NoError(t, err)
		return found
	}
	for cron, needs := range map[string]bool{"30 2 * * *": true, "30 12 * * *": false, "*/20 * * * *": false} {
		spec := client.ScheduleSpec{TimeZoneName: "Europe/Berlin", CronExpressions: []string{cron}}
		require.Equal(t, needs, lacks(spec, made), cron)
		require.NoError(t, Amend(&spec, marks, made))
		calendars := len(spec.Calendars)
		for _, later := range []int{0, 3, 18} {
			require.False(t, lacks(spec, made.AddDate(later, 0, 0)), "%s after %d years", cron, later)
		}
		require.Len(t, spec.Calendars, calendars, "it is not changed")
		require.Equal(t, needs, lacks(spec, made.AddDate(21, 0, 0)), cron)
		spec.TimeZoneName = "UTC"
		require.False(t, lacks(spec, made), cron)
	}
}
