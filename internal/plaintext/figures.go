package plaintext

import (
	"fmt"
	"time"
)

// Dollars formats an amount in US dollars. It shows four decimals for amounts below one cent, and two for all others.
func Dollars(usd float64) string {
	if usd > 0 && usd < 0.01 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// Cost formats what something has cost, in US dollars. If a part of it is an estimate, or a guess because the price of
// a model is not known, the amount is about that.
func Cost(usd float64, estimated bool) string {
	if estimated && usd > 0 {
		return "about " + Dollars(usd)
	}
	return Dollars(usd)
}

// Duration formats a duration in whole seconds, such as "45s" or "2m0s". For a duration below 10 s, it shows tenths of
// a second.
func Duration(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Span formats a duration in at most two units, beginning with the largest, such as 2h5m or 3d4h.
func Span(d time.Duration) string {
	d = max(d, 0)
	days, hours, minutes := int(d.Hours())/24, int(d.Hours()), int(d.Minutes())
	switch {
	case days >= 2:
		return fmt.Sprintf("%dd%dh", days, hours%24)
	case hours > 0:
		return fmt.Sprintf("%dh%dm", hours, minutes%60)
	case minutes > 0:
		return fmt.Sprintf("%dm", minutes)
	default:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
}

// About returns a duration in the largest unit that fits, rounded, such as "40 s", "12 min", "6 h" or "3 days".
func About(d time.Duration) string {
	const day = 24 * time.Hour
	in := func(unit time.Duration) int { return int(max(d, 0).Round(unit) / unit) }
	switch {
	case in(time.Second) < 60:
		return fmt.Sprintf("%d s", in(time.Second))
	case in(time.Minute) < 60:
		return fmt.Sprintf("%d min", in(time.Minute))
	case in(time.Hour) < 48:
		return fmt.Sprintf("%d h", in(time.Hour))
	default:
		return fmt.Sprintf("%d days", in(day))
	}
}

// Length returns a duration that people have chosen, such as "90 min", "4 h" or "7 days". It rounds nothing.
func Length(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
		least  time.Duration
	}{{24 * time.Hour, "days", 2}, {time.Hour, "h", 1}, {time.Minute, "min", 1}, {time.Second, "s", 0}} {
		if d%unit.length == 0 && d/unit.length >= unit.least {
			return fmt.Sprintf("%d %s", d/unit.length, unit.name)
		}
	}
	return d.String()
}
