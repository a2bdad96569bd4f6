package console

import (
	"time"

	"github.com/claudeops/claudeops/internal/escalation/calendar"
)

// Clock returns the current time. The zone of this time is the time zone for output.
type Clock func() time.Time

// TimeOfDay returns the time of day and the zone of t, with the date if that is not today's.
func (c Clock) TimeOfDay(t time.Time) string {
	if now := c(); calendar.Of(t.In(now.Location())) != calendar.Of(now) {
		return c.DateTime(t)
	}
	return c.format(t, time.TimeOnly)
}

// DateTime returns the date, the time of day and the zone of t.
func (c Clock) DateTime(t time.Time) string { return c.format(t, time.DateTime) }

// Moment returns the date, the time of day (to the minute) and the zone of t.
func (c Clock) Moment(t time.Time) string { return c.format(t, "2006-01-02 15:04") }

func (c Clock) format(t time.Time, layout string) string {
	t = t.In(c().Location())
	return t.Format(layout) + " " + calendar.Zone(t)
}
