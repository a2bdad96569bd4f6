// Package calendar computes with days. It is the only package that does: a day of a time zone can have 23 or 25 hours,
// can begin at 01:00 because the clocks skip midnight, and can be missing altogether.
//
// A Date has no zone and no time of day, so the next date always is another one, and every loop over dates ends. A date
// becomes a stretch of time by Begin and End. The days of a zone neither overlap nor leave a gap: a day ends when the
// next one begins.
package calendar

import (
	"fmt"
	"iter"
	"time"
)

// Date is a day of the Gregorian calendar. It counts the days since 1970-01-01, so dates are compared and subtracted as
// numbers.
type Date int64

const (
	// secondsOfDay is the length of a day of UTC, which knows no leap seconds here.
	secondsOfDay = 24 * 60 * 60
	// farthest is more than the offset of any time zone, with those of local mean time.
	farthest = 26 * time.Hour
	// stride divides the time around a midnight. No zone has ever changed its offset and changed it back in this time.
	stride = farthest / 2
)

// Parse accepts the dates from Earliest to Latest. Their times are not the zero time, and can be written as JSON in
// every zone.
const (
	Earliest Date = 0         // 1970-01-01
	Latest   Date = 2_932_531 // 9998-12-31
)

// Of returns the day that t belongs to, in the zone of t.
func Of(t time.Time) Date {
	shown := label(t)
	// When clocks are set back shortly after midnight, a date is shown, and then the date before once more. The day
	// begins when its date stays.
	for t.Before(shown.Begin(t.Location())) {
		shown--
	}
	return shown
}

// label returns the date that a clock in the zone of t shows at t.
func label(t time.Time) Date {
	year, month, day := t.Date()
	return Date(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / secondsOfDay)
}

// Parse parses a date, such as 2026-11-25. The error continues "must ...".
func Parse(text string) (Date, error) {
	parsed, err := time.Parse(time.DateOnly, text)
	if d := label(parsed); err == nil && d >= Earliest && d <= Latest {
		return d, nil
	}
	return 0, fmt.Errorf("be a date from %s to %s, such as 2026-11-25", Earliest, Latest)
}

// String returns the date in the form 2026-11-25.
func (d Date) String() string { return d.midnight().Format(time.DateOnly) }

// midnight returns the begin of the date in UTC.
func (d Date) midnight() time.Time { return time.Unix(int64(d)*secondsOfDay, 0).UTC() }

// Begin returns the first instant of the day in a zone. A day whose midnight is skipped begins where the clocks
// continue. A day that a zone skips begins, and ends, with the next one.
func (d Date) Begin(zone *time.Location) time.Time {
	earliest, latest := d.midnight().Add(-farthest), d.midnight().Add(farthest)
	// Go back through the stretches of time with one offset, to the last one that the date before has a part of.
	for end := latest; ; {
		begin := d.midnight().Add(-offset(end.Add(-1), zone))
		start := lastChange(earliest, end, zone)
		if begin.After(start) || !start.After(earliest) {
			if begin.After(end) {
				begin = end
			}
			return begin.In(zone)
		}
		end = start
	}
}

// offset returns how far the clocks of a zone are ahead of UTC.
func offset(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// lastChange returns the last whole second before end at which the offset of a zone changed, not before earliest. It
// looks at the offset only, because time.Time.ZoneBounds returns an end in the past on December 31 of leap years, in
// zones with a rule (Go 1.26).
func lastChange(earliest, end time.Time, zone *time.Location) time.Time {
	own := offset(end.Add(-1), zone)
	same := end // the offset is the same since
	for same.After(earliest) && offset(same.Add(-stride), zone) == own {
		same = same.Add(-stride)
	}
	if !same.After(earliest) {
		return earliest
	}
	other := same.Add(-stride) // the offset is another one
	for same.Sub(other) > time.Second {
		middle := other.Add((same.Sub(other) / 2).Truncate(time.Second))
		if offset(middle, zone) == own {
			same = middle
		} else {
			other = middle
		}
	}
	return same
}

// End returns the instant at which the day ends in a zone: the begin of the next day.
func (d Date) End(zone *time.Location) time.Time { return (d + 1).Begin(zone) }

// Days returns the days that have a part of the time from one instant until before another one, in their order. A date
// that the zone skips has none. The zone is that of from.
func Days(from, to time.Time) iter.Seq[Date] {
	zone := from.Location()
	return func(yield func(Date) bool) {
		if !from.Before(to) {
			return
		}
		begin, end := time.Time{}, Of(to.Add(-1).In(zone))
		for d := Of(from); d <= end; d++ {
			next := d.End(zone)
			if begin.Before(next) && !yield(d) {
				return
			}
			begin = next
		}
	}
}

// Zone names the zone of t as its clocks do: CET, UTC, or UTC-03:00 where the zone has no letters of its own.
func Zone(t time.Time) string {
	name, _ := t.Zone()
	if name != "" && name[0] != '+' && name[0] != '-' {
		return name
	}
	return "UTC" + t.Format("-07:00")
}

// Clock returns the time of day of t with its zone, as a clock in the zone of now shows it, and the date if it is not
// that of now. Without now, the zone is UTC.
func Clock(t, now time.Time) string {
	t = t.In(now.Location())
	if !now.IsZero() && Of(t) == Of(now) {
		return t.Format("15:04 ") + Zone(t)
	}
	return t.Format("Jan 2, 15:04 ") + Zone(t)
}

// Change is a change of the clocks.
type Change struct {
	// At is the first instant after the change, in the zone. From is the time of day that clocks showed next without
	// the change: its zone is UTC. If clocks are set ahead, it is the first time of day that is left out.
	At, From time.Time
	// By is how far the clocks are set ahead. If they are set back, it is negative, and the time before At is shown a
	// second time.
	By time.Duration
}

// Changes returns the changes between two instants, in the zone of from.
func Changes(from, to time.Time) (changes []Change) {
	zone := from.Location()
	for at := from.Truncate(time.Second); at.Before(to); at = at.Add(stride) {
		before, after := offset(at.Add(-1), zone), offset(at.Add(stride-1), zone)
		if after != before {
			change := lastChange(at, at.Add(stride), zone).In(zone)
			changes = append(changes, Change{At: change, From: change.UTC().Add(before), By: after - before})
		}
	}
	return changes
}
