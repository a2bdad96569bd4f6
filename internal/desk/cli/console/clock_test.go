package console

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestClockNamesTheZone checks that no time of day is printed without its zone, and none of another day without its
// date.
func TestClockNamesTheZone(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC)
	for zone, want := range map[string]string{
		"UTC": "00:30:00 UTC", "Europe/Berlin": "01:30:00 CET", "America/Santiago": "21:30:00 UTC-03:00",
	} {
		location, err := time.LoadLocation(zone)
		require.NoError(t, err)
		clock := Clock(func() time.Time { return at.In(location) })
		require.Equal(t, want, clock.TimeOfDay(at))
		require.Contains(t, clock.DateTime(at), want)
		for _, otherDay := range []time.Time{at.Add(-24 * time.Hour), at.Add(24 * time.Hour)} {
			require.Equal(t, clock.DateTime(otherDay), clock.TimeOfDay(otherDay), "a time of another day has its date")
		}
		require.Contains(t, clock.Moment(at), want[len("00:00:00"):])
	}
}
