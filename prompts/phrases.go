package prompts

import (
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// howOften describes in words how many actions a limit allows, such as "2 restarts in 4 hours".
func howOften(limit escalation.Limit, thing string) string {
	switch {
	case !limit.IsSet():
		return "any number of " + thing + "s"
	case limit.Max == 0:
		return "no " + thing
	case limit.Max == 1:
		return "1 " + thing + " in " + span(limit.Window)
	default:
		return fmt.Sprintf("%d %ss in %s", limit.Max, thing, span(limit.Window))
	}
}

// span formats a duration in the largest unit that divides the duration without a remainder, such as "90 minutes".
func span(d escalation.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		switch count := d.Std() / unit.length; {
		case d.Std()%unit.length != 0:
		case count == 1:
			return "1 " + unit.name
		default:
			return fmt.Sprintf("%d %ss", count, unit.name)
		}
	}
	return d.String()
}
