package proposal

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// day is the length of a day without a change of the clocks.
const day = 24 * time.Hour

// shortest is the shortest time between two looks. A look takes a few minutes.
const shortest = 5 * time.Minute

// Timing says when a schedule looks.
type Timing struct {
	// Every is the time from one look to the next.
	Every time.Duration
	// From and To limit the looks to hours of the day: From is the hour of the first one, and To the hour at which they
	// end, both from 0 to 23. If they are equal, there is no limit.
	From, To int
	// Zone is the time zone of the hours, such as Europe/Berlin; empty for UTC.
	Zone string
}

// ParseHours parses hours in the form 7-22; an empty text is the whole day.
func ParseHours(text string) (from, to int, err error) {
	if text = strings.TrimSpace(text); text == "" {
		return 0, 0, nil
	}
	first, last, is := strings.Cut(text, "-")
	from, err = strconv.Atoi(strings.TrimSpace(first))
	if err == nil {
		to, err = strconv.Atoi(strings.TrimSpace(last))
	}
	if !is || err != nil || from < 0 || from > 23 || to < 0 || to > 24 || from == to%24 {
		return 0, 0, errors.New("be two hours of the day, such as 7-22, or nothing for the whole day")
	}
	return from, to % 24, nil
}

// Check returns an error if no schedule can have this timing. It continues "must ...".
func (t Timing) Check() error {
	switch {
	case t.Every < shortest || t.Every > day:
		return errors.New("be between 5m and 24h")
	case t.From != t.To && time.Hour%t.Every != 0 && t.Every%time.Hour != 0:
		return errors.New("divide an hour or be whole hours, because the looks are limited to hours of the day")
	}
	return nil
}

// hours lists the hours of the day that have looks.
func (t Timing) hours() (hours []int) {
	step := max(int(t.Every/time.Hour), 1)
	for hour := t.From; hour < t.From+(t.To-t.From+24)%24; hour += step {
		hours = append(hours, hour%24)
	}
	return hours
}

// PerDay returns the number of looks in a day.
func (t Timing) PerDay() float64 {
	if t.From == t.To {
		return float64(day) / float64(t.Every)
	}
	return float64(len(t.hours())) * max(float64(time.Hour)/float64(t.Every), 1)
}

// Flags returns the flags of `claudeops schedule create` and `update` for the timing.
func (t Timing) Flags() []string {
	flags := []string{"--every", escalation.ShortDuration(t.Every)}
	if t.From != t.To {
		flags = append(flags, "--hours", fmt.Sprintf("%d-%d", t.From, t.To), "--timezone", cmp.Or(t.Zone, "UTC"))
	}
	return flags
}

// Cron returns the timing as a cron expression; empty for looks of the whole day.
func (t Timing) Cron() string {
	if t.From == t.To {
		return ""
	}
	minutes := "0"
	if t.Every < time.Hour {
		minutes = fmt.Sprintf("*/%d", int(t.Every/time.Minute))
	}
	return minutes + " " + ranges(t.hours()) + " * * *"
}

// ranges returns hours as a field of a cron expression.
func ranges(hours []int) string {
	slices.Sort(hours)
	if first, last := hours[0], hours[len(hours)-1]; len(hours) > 2 && last-first == len(hours)-1 {
		return fmt.Sprintf("%d-%d", first, last)
	}
	texts := make([]string, len(hours))
	for i, hour := range hours {
		texts[i] = strconv.Itoa(hour)
	}
	return strings.Join(texts, ",")
}

// String describes the timing in words, with the first and the last look of a day.
func (t Timing) String() string {
	text := "every " + escalation.ShortDuration(t.Every)
	if t.From != t.To {
		hours, minute := t.hours(), 0
		if t.Every < time.Hour {
			minute = int((time.Hour - t.Every) / time.Minute)
		}
		text += fmt.Sprintf(", the first at %02d:00, the last at %02d:%02d", t.From, hours[len(hours)-1], minute)
	}
	return text
}

// LocalZone returns the name of the time zone of this machine; empty if it is unknown or UTC. TZ of environ wins.
func LocalZone(environ []string) string {
	zone := ""
	for _, entry := range environ {
		if value, is := strings.CutPrefix(entry, "TZ="); is {
			zone = value
		}
	}
	if zone == "" {
		target, err := filepath.EvalSymlinks("/etc/localtime")
		if err != nil {
			return ""
		}
		_, zone, _ = strings.Cut(target, "/zoneinfo/")
	}
	if _, err := time.LoadLocation(zone); err != nil || zone == "Etc/UTC" || zone == "UTC" {
		return ""
	}
	return zone
}
