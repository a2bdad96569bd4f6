// Package crontime finds the times of a schedule that the clocks of its zone skip or repeat. Temporal starts nothing at
// the former, so a schedule for 02:30 does not run in the night in which 02:00 becomes 03:00, and starts twice at the
// latter. The package reads schedules with Temporal's own code.
package crontime

import (
	"iter"
	"slices"
	"time"
	_ "time/tzdata" // the host may have no time zones

	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/service/worker/scheduler"

	"github.com/claudeops/claudeops/internal/escalation/calendar"
)

const (
	// ahead limits how far ahead Amend looks: 20 years. Governments change the rules of time zones more often.
	ahead = 20 * 365 * 24 * time.Hour
	// near limits how far ahead Lacks looks: a year.
	near = 365 * 24 * time.Hour
	// maxMoved limits the starts that Amend changes in one night.
	maxMoved = 60
)

// Marks tell what Amend adds to a schedule from what people have written.
type Marks struct {
	// Comment is the comment of calendars.
	Comment string
	// Every is the least length of intervals, which have no comment. It is so long that each of them starts once.
	Every time.Duration
}

// Restore removes from a schedule what Amend has added.
func Restore(spec *client.ScheduleSpec, marks Marks) {
	added := func(c client.ScheduleCalendarSpec) bool { return c.Comment == marks.Comment }
	spec.Calendars, spec.Skip = slices.DeleteFunc(spec.Calendars, added), slices.DeleteFunc(spec.Skip, added)
	spec.Intervals = slices.DeleteFunc(spec.Intervals,
		func(i client.ScheduleIntervalSpec) bool { return i.Every >= marks.Every })
}

// Amend lets a schedule start once at each of its times that a change of the clocks skips or repeats: for all that are
// skipped, at the first instant after the change, and for one that is repeated, the first time that it is shown. What
// Amend has added before is replaced. Calendars that run in every hour are left alone, because their next time is never
// far. The error is that of Temporal about the schedule.
func Amend(spec *client.ScheduleSpec, marks Marks, now time.Time) error {
	Restore(spec, marks)
	own, err := compile(&schedulepb.ScheduleSpec{
		StructuredCalendar: structured(spec.Calendars), CronString: spec.CronExpressions,
		TimezoneName: spec.TimeZoneName,
	})
	if err != nil {
		return err
	}
	canonical := own.CanonicalForm()
	zone, err := time.LoadLocation(canonical.GetTimezoneName())
	if err != nil {
		return err
	}
	a := amendment{spec: spec, marks: marks, now: now, zone: zone, own: own}
	var daily, each []*schedulepb.StructuredCalendarSpec
	for _, c := range canonical.GetStructuredCalendar() {
		if hourly(c) {
			each = append(each, c)
		} else {
			daily = append(daily, c)
		}
	}
	if a.daily, err = compile(&schedulepb.ScheduleSpec{StructuredCalendar: daily}); err != nil {
		return err
	}
	if a.hourly, err = compile(&schedulepb.ScheduleSpec{StructuredCalendar: each}); err != nil {
		return err
	}
	for _, change := range calendar.Changes(now.In(zone), now.Add(ahead)) {
		if change.By > 0 {
			a.skipped(change)
		} else {
			a.repeated(change)
		}
	}
	return nil
}

// Lacks reports whether Amend would add something for the next year that a schedule does not have: it was made without
// Amend, or long ago, or the rules of its zone have changed. The error is that of Temporal about the schedule.
func Lacks(spec client.ScheduleSpec, marks Marks, now time.Time) (bool, error) {
	had := added(spec, marks, now)
	spec.Calendars, spec.Skip, spec.Intervals = slices.Clone(spec.Calendars), slices.Clone(spec.Skip),
		slices.Clone(spec.Intervals)
	if err := Amend(&spec, marks, now); err != nil {
		return false, err
	}
	for at := range added(spec, marks, now) {
		if !had[at] {
			return true, nil
		}
	}
	return false, nil
}

// added returns the times of the next year at which what Amend has added starts something.
func added(spec client.ScheduleSpec, marks Marks, now time.Time) map[int64]bool {
	times := map[int64]bool{}
	note := func(at time.Time) {
		if at.After(now) && at.Before(now.Add(near)) {
			times[at.Unix()] = true
		}
	}
	zone, err := time.LoadLocation(spec.TimeZoneName)
	if err != nil {
		return times
	}
	for _, c := range spec.Calendars {
		fields := [][]client.ScheduleRange{c.Year, c.Month, c.DayOfMonth, c.Hour, c.Minute}
		if c.Comment == marks.Comment && !slices.ContainsFunc(fields,
			func(f []client.ScheduleRange) bool { return len(f) != 1 }) {
			hour, minute := c.Hour[0].Start, c.Minute[0].Start
			note(time.Date(c.Year[0].Start, time.Month(c.Month[0].Start), c.DayOfMonth[0].Start, hour, minute, 0, 0,
				zone))
		}
	}
	for _, i := range spec.Intervals {
		if i.Every >= marks.Every {
			note(time.Unix(int64(i.Every/time.Second), 0))
		}
	}
	return times
}

// amendment is one call of Amend.
type amendment struct {
	spec  *client.ScheduleSpec
	marks Marks
	now   time.Time
	zone  *time.Location
	// own is the schedule. daily and hourly are its calendars that do not and that do run in every hour, on clocks that
	// never change, and that show UTC.
	own, daily, hourly *scheduler.CompiledSpec
}

// skipped adds what a change that sets the clocks ahead needs.
func (a amendment) skipped(change calendar.Change) {
	if at := next(a.daily, change.From); at.IsZero() || !at.Before(change.From.Add(change.By)) {
		return
	}
	a.spec.Calendars = append(a.spec.Calendars, only(change.At, a.marks.Comment))
	// In a skip of less than an hour, Temporal starts at a time that the schedule does not have.
	for at := range a.starts(change.At.Add(time.Second), change.At.Add(change.By)) {
		if shown := a.shown(at); !next(a.daily, shown).Equal(shown) && !next(a.hourly, shown).Equal(shown) {
			a.spec.Skip = append(a.spec.Skip, only(at, a.marks.Comment))
		}
	}
}

// repeated adds what a change that sets the clocks back needs. Temporal then starts once, twice or an hour late,
// depending on the zone and on when it looks. It reads calendars by the time that clocks show, so all these starts are
// taken away. The first one is added, a second later: as an interval since 1970 that ends then for the first time.
func (a amendment) repeated(change calendar.Change) {
	begin := change.At.Add(change.By)
	shownFirst := a.shown(begin)
	shown := next(a.daily, shownFirst)
	for range maxMoved {
		if shown.IsZero() || !shown.Before(shownFirst.Add(-change.By)) {
			return
		}
		if !next(a.hourly, shown).Equal(shown) {
			a.spec.Skip = append(a.spec.Skip, only(shown, a.marks.Comment))
			late := shown.Add(time.Hour)
			if !next(a.daily, late).Equal(late) && !next(a.hourly, late).Equal(late) {
				a.spec.Skip = append(a.spec.Skip, only(late, a.marks.Comment))
			}
			if first := begin.Add(shown.Sub(shownFirst)); first.After(a.now) {
				since := time.Duration(first.Unix()+1) * time.Second
				a.spec.Intervals = append(a.spec.Intervals, client.ScheduleIntervalSpec{Every: since})
			}
		}
		shown = next(a.daily, shown.Add(time.Second))
	}
}

// starts returns the starts of the schedule from a time until before another one, at most maxMoved.
func (a amendment) starts(from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		at := next(a.own, from)
		for range maxMoved {
			if at.IsZero() || !at.Before(to) || !yield(at.In(a.zone)) {
				return
			}
			at = next(a.own, at.Add(time.Second))
		}
	}
}

// shown returns the time of day that clocks show, in UTC.
func (a amendment) shown(at time.Time) time.Time {
	at = at.In(a.zone)
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
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
		for hour := span.GetStart(); hour <= max(span.GetStart(), span.GetEnd()) &&
			hour < 24; hour += max(span.GetStep(), 1) {
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
			DayOfMonth: ranges(c.DayOfMonth, 1, 31), Month: ranges(c.Month, 1, 12),
			DayOfWeek: ranges(c.DayOfWeek, 0, 6), Year: ranges(c.Year, -1, -1),
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
