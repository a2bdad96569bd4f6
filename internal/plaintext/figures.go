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
