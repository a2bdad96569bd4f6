// Package crontime finds the times of a schedule that the clocks of its zone skip. Temporal starts nothing at these times, so a
// schedule for 02:30 does not run in the night in which 02:00 becomes 03:00. The package reads schedules with Temporal's own code.
package crontime

import (
	"slices"
	"time"
	_ "time/tzdata" // the host may have no time zones

	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/service/worker/scheduler"

	"github.com/claudeops/claudeops/internal/calendar"
)

const (
	// ahead limits how far ahead Amend looks: 20 years. Governments change the rules of time zones more often.
	ahead = 20 * 365 * 24 * time.Hour
	// maxMoved limits the starts that Amend moves in one night.
	maxMoved = 60
)

// Amend adds a calendar to a schedule for each change of the clocks that skips one of its times: the schedule starts once, at the
// first instant after the change. Calendars that Amend has added before are replaced. Calendars that run in every hour are left
// alone, because their next time is never far. The comment marks what Amend has added. The error is that of Temporal about the schedule.
func Amend(spec *client.ScheduleSpec, comment string, now time.Time) error {
	added := func(c client.ScheduleCalendarSpec) bool { return c.Comment == comment }
	spec.Calendars, spec.Skip = slices.DeleteFunc(spec.Calendars, added), slices.DeleteFunc(spec.Skip, added)
	own, err := compile(&schedulepb.ScheduleSpec{
		StructuredCalendar: structured(spec.Calendars), CronString: spec.CronExpressions, TimezoneName: spec.TimeZoneName,
	})
	if err != nil {
		return err
	}
	canonical := own.CanonicalForm()
	zone, err := time.LoadLocation(canonical.GetTimezoneName())
	if err != nil {
		return err
	}
	// The schedule on clocks that never change, and that show UTC.
	still, err := compile(&schedulepb.ScheduleSpec{StructuredCalendar: slices.DeleteFunc(canonical.GetStructuredCalendar(), hourly)})
	if err != nil {
		return err
	}
	for _, skip := range calendar.Skips(now.In(zone), now.Add(ahead)) {
		if at := next(still, skip.From); at.IsZero() || !at.Before(skip.From.Add(skip.By)) {
			continue
		}
		spec.Calendars = append(spec.Calendars, only(skip.At, comment))
		// In a skip of less than an hour, Temporal starts at a time that the schedule does not have.
		shown := func(at time.Time) time.Time { return skip.From.Add(skip.By).Add(at.Sub(skip.At)) }
		at := next(own, skip.At.Add(time.Second))
		for range maxMoved {
			if at.IsZero() || !at.Before(skip.At.Add(skip.By)) {
				break
			}
			if !next(still, shown(at)).Equal(shown(at)) {
				spec.Skip = append(spec.Skip, only(at.In(zone), comment))
			}
			at = next(own, at.Add(time.Second))
		}
	}
	return nil
}

func compile(spec *schedulepb.ScheduleSpec) (*scheduler.CompiledSpec, error) {
	unlimited := func() int { return 0 }
	return scheduler.NewSpecBuilder(unlimited, unlimited).NewCompiledSpec(spec)
}

// next returns the first time of a schedule that is not before at; zero if there is none.
func next(spec *scheduler.CompiledSpec, at time.Time) time.Time {
	found, err := spec.GetNextTime("", at.Add(-time.Second))
	if err != nil {
		return time.Time{} // only a limit of iterations, which compile does not set
	}
	return found.Nominal
}

// hourly reports whether a calendar runs in every hour of a day.
func hourly(c *schedulepb.StructuredCalendarSpec) bool {
	var hours [24]bool
	for _, span := range c.GetHour() {
		for hour := span.GetStart(); hour <= max(span.GetStart(), span.GetEnd()) && hour < 24; hour += max(span.GetStep(), 1) {
			hours[hour] = true
		}
	}
	return !slices.Contains(hours[:], false)
}

// only returns the calendar of one instant.
func only(at time.Time, comment string) client.ScheduleCalendarSpec {
	one := func(value int) []client.ScheduleRange { return []client.ScheduleRange{{Start: value}} }
	return client.ScheduleCalendarSpec{
		Second: one(at.Second()), Minute: one(at.Minute()), Hour: one(at.Hour()),
		DayOfMonth: one(at.Day()), Month: one(int(at.Month())), Year: one(at.Year()), Comment: comment,
	}
}

// structured converts calendars as the SDK does.
func structured(calendars []client.ScheduleCalendarSpec) (converted []*schedulepb.StructuredCalendarSpec) {
	for _, c := range calendars {
		converted = append(converted, &schedulepb.StructuredCalendarSpec{
			Second: ranges(c.Second, 0, 0), Minute: ranges(c.Minute, 0, 0), Hour: ranges(c.Hour, 0, 0),
			DayOfMonth: ranges(c.DayOfMonth, 1, 31), Month: ranges(c.Month, 1, 12), DayOfWeek: ranges(c.DayOfWeek, 0, 6),
			Year: ranges(c.Year, -1, -1),
		})
	}
	return converted
}

// ranges converts ranges. No range means those from first to last; every value, if first is negative.
func ranges(given []client.ScheduleRange, first, last int32) (converted []*schedulepb.Range) {
	if len(given) == 0 && first >= 0 {
		return []*schedulepb.Range{{Start: first, End: last}}
	}
	for _, r := range given {
		own := &schedulepb.Range{Start: int32(r.Start), End: int32(r.End), Step: int32(r.Step)} //nolint:gosec // at most a year
		converted = append(converted, own)
	}
	return converted
}
