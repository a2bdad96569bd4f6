package operations

import (
	"cmp"

	"github.com/claudeops/claudeops/activities"
)

// doing returns one line about what a running session does. Both arguments can be nil.
func doing(attempt *Attempt, progress *activities.TierProgress) string {
	if waits := attempt.Waits(); waits != "" {
		return waits
	}
	// Temporal keeps the heartbeat of the previous attempt until this attempt sends a heartbeat.
	if progress == nil || attempt != nil && progress.Attempt < attempt.Number {
		return "starts"
	}
	return cmp.Or(doingNow(progress.Now), "thinks")
}
