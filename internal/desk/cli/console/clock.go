package console

import (
	"time"

	"github.com/claudeops/claudeops/internal/escalation/calendar"
)

// Clock returns the current time. The zone of this time is the time zone for output.
type Clock func() time.Time

// TimeOfDay returns the time of day of t.
func (c Clock) TimeOfDay(t time.Time) string { return t.In(c().Location()).Format(time.TimeOnly) }

// DateTime returns the date, the time of day and the zone of t.
func (c Clock) DateTime(t time.Time) string {
	t = t.In(c().Location())
	return t.Format(time.DateTime) + " " + calendar.Zone(t)
}

// Moment returns the date, the time of day (to the minute) and the zone of t.
func (c Clock) Moment(t time.Time) string {
	return t.In(c().Location()).Format("2006-01-02 15:04 ") + calendar.Zone(t.In(c().Location()))
}
