package crontime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/sdk/client"
)

// starts returns the local times at which Temporal starts cycles of a schedule between two dates.
func starts(t *testing.T, spec client.ScheduleSpec, from, to string) (times []string) {
	t.Helper()
	zone, err := time.LoadLocation(spec.TimeZoneName)
	require.NoError(t, err)
	compiled, err := compile(&schedulepb.ScheduleSpec{
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
		"UTC": {"UTC", "2026-03-29", "2026-03-30", []string{"30 2 * * *"}, []string{"03-29 02:30:00"}, []string{"03-29 02:30:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := client.ScheduleSpec{TimeZoneName: c.zone, CronExpressions: c.cron}
			require.Equal(t, c.before, starts(t, spec, c.from, c.to))
			require.NoError(t, Amend(&spec, "added", now))
			require.Equal(t, c.after, starts(t, spec, c.from, c.to))
			calendars, skip := len(spec.Calendars), len(spec.Skip)
			require.NoError(t, Amend(&spec, "added", now))
			require.Len(t, spec.Calendars, calendars, "amended twice")
			require.Len(t, spec.Skip, skip, "amended twice")
		})
	}
	spec := client.ScheduleSpec{TimeZoneName: "Europe/Berlin", CronExpressions: []string{"30 * * * *"}}
	require.NoError(t, Amend(&spec, "added", now))
	require.Empty(t, spec.Calendars, "it runs in every hour")
	for _, wrong := range []client.ScheduleSpec{{CronExpressions: []string{"30 2 * *"}}, {TimeZoneName: "Europe/Bielefeld"}} {
		require.Error(t, Amend(&wrong, "added", now))
	}
}
