package daily

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
)

// statusOf names the worker of the running session, or says why the session waits; "" if neither is known.
func statusOf(clock console.Clock, now operations.Snapshot) string {
	at, progress := now.Attempt, now.Progress
	if at == nil {
		return ""
	}
	switch at.State {
	case operations.AttemptStarted:
		// Temporal keeps the heartbeat of the previous attempt until this attempt sends a heartbeat.
		if progress != nil && progress.WorkerPID != 0 && progress.Attempt >= at.Number {
			return workerOf(*progress)
		}
	case operations.AttemptScheduled:
		return fmt.Sprintf("attempt %d starts at %s", at.Number, clock.TimeOfDay(at.StartsAt))
	case operations.AttemptQueued:
		return fmt.Sprintf("attempt %d waits for a free worker on task queue %s", at.Number,
			console.Printable(at.Queue, 200))
	case operations.AttemptPaused:
		return fmt.Sprintf("attempt %d is paused in Temporal", at.Number)
	}
	return ""
}

// effort returns one line with the status of the running session and, if there was a previous attempt, why that attempt
// ended.
func effort(clock console.Clock, now operations.Snapshot) string {
	says := []string{statusOf(clock, now), now.Attempt.Before()}
	return strings.Join(slices.DeleteFunc(says, func(text string) bool { return text == "" }), "; ")
}

// workerOf names the worker that runs a tier.
func workerOf(progress activities.TierProgress) string {
	host := console.Printable(progress.Host, 60)
	text := fmt.Sprintf("attempt %d, by worker process %d on %s", progress.Attempt, progress.WorkerPID, host)
	if progress.Now.Waiting != "" {
		text += ", waits: " + console.Printable(progress.Now.Waiting, 300)
	}
	return text
}
