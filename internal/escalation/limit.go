package escalation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limit allows at most Max events within any period of the length Window. The zero Limit allows any number of events.
type Limit struct {
	Max    int      `json:"max"`
	Window Duration `json:"window"`
}

// LongestDuration limits the durations that people configure. A limit with a longer one would never end in practice,
// and sums of durations could overflow.
const LongestDuration = 10 * 365 * 24 * time.Hour

// noLimit is the text of a Limit that is not set.
const noLimit = "none"

// ParseLimit parses a limit. "3/1h" allows three events within any hour, and "0/1h" forbids all events. "none" and ""
// set no limit.
func ParseLimit(text string) (Limit, error) {
	text = strings.TrimSpace(text)
	if text == "" || text == noLimit {
		return Limit{}, nil
	}
	count, window, found := strings.Cut(text, "/")
	limit, err := strconv.Atoi(strings.TrimSpace(count))
	span, spanErr := time.ParseDuration(strings.TrimSpace(window))
	switch {
	case !found || err != nil || spanErr != nil:
		return Limit{}, fmt.Errorf("%q is not a limit: write a number, a slash and a duration, such as 3/1h, or %s",
			text, noLimit)
	case limit < 0:
		return Limit{}, fmt.Errorf("%q is not a limit: the number must not be negative", text)
	case span <= 0:
		return Limit{}, fmt.Errorf("%q is not a limit: the duration must be above zero", text)
	case span > LongestDuration:
		return Limit{}, fmt.Errorf("%q is not a limit: the duration must be at most 87600h (ten years)", text)
	}
	return Limit{Max: limit, Window: Duration(span)}, nil
}

// IsSet reports whether l limits anything.
func (l Limit) IsSet() bool { return l.Window > 0 }

// String formats l in the syntax of ParseLimit.
func (l Limit) String() string {
	if !l.IsSet() {
		return noLimit
	}
	return fmt.Sprintf("%d/%s", l.Max, ShortDuration(l.Window.Std()))
}

// MarshalText implements encoding.TextMarshaler.
func (l Limit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Limit) UnmarshalText(text []byte) (err error) {
	*l, err = ParseLimit(string(text))
	return err
}

// Use describes the use of a limit at one time.
type Use struct {
	// Used counts the events within the window of the limit.
	Used int `json:"used"`
	// Limit is the limit itself.
	Limit Limit `json:"limit"`
	// Free reports whether the limit allows one more event now.
	Free bool `json:"free"`
	// FreeAt is the time at which the limit will allow one more event; zero if Free is true, or if the limit never
	// will.
	FreeAt time.Time `json:"free_at,omitzero"`
	// Last is the time of the latest known event, even if this time is before the window; zero if no event is known.
	Last time.Time `json:"last,omitzero"`
}

// use returns the use of l at the time now. The times of the events can be in any order.
func (l Limit) use(events []time.Time, now time.Time) Use {
	events = slices.SortedFunc(slices.Values(events), time.Time.Compare)
	use := Use{Limit: l, Free: true}
	if len(events) > 0 {
		use.Last = events[len(events)-1]
	}
	if !l.IsSet() {
		return use
	}
	since := now.Add(-l.Window.Std())
	recent := slices.DeleteFunc(events, func(at time.Time) bool { return !at.After(since) })
	use.Used = len(recent)
	use.Free = use.Used < l.Max
	if !use.Free && l.Max > 0 {
		// One more event is allowed when the window contains only Max-1 of the recent events.
		use.FreeAt = recent[use.Used-l.Max].Add(l.Window.Std())
	}
	return use
}
