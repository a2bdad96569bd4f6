package operations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// TestUpcoming checks that a start which makes up for a change of the clocks is shown once, and is not one of the
// schedule's times.
func TestUpcoming(t *testing.T) {
	t.Parallel()
	first := time.Date(2027, 11, 7, 5, 30, 1, 0, time.UTC)
	spec := &client.ScheduleSpec{
		TimeZoneName: "America/New_York", Calendars: []client.ScheduleCalendarSpec{{Comment: "30 1 * * *"}, {Comment: OnceSkipped}},
		Intervals: []client.ScheduleIntervalSpec{{Every: first.Sub(time.Unix(0, 0))}},
	}
	again := time.Unix(2*first.Unix(), 0)
	require.Equal(t, []time.Time{first}, upcoming([]time.Time{first, again}, spec, false))
	require.Equal(t, []time.Time{}, upcoming([]time.Time{first}, spec, true))
	require.Equal(t, []time.Time{again}, upcoming([]time.Time{again}, nil, false))
	require.Equal(t, "30 1 * * * (America/New_York)", whenOf(spec))
}
