package operations

import (
	"fmt"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// maxDoing limits a line about what an agent does, in characters.
const maxDoing = 300

// doing returns one line about what a running session does, with its secrets masked. Both arguments can be nil.
func (b *backend) doing(attempt *Attempt, progress *activities.TierProgress) string {
	if waits := attempt.Waits(); waits != "" {
		return waits
	}
	if progress == nil || attempt != nil && progress.Attempt < attempt.Number {
		return "starts"
	}
	return line(b.mask.Text(progressLine(progress.Now)), maxDoing)
}

// progressLine describes the progress of an invocation by its latest call.
func progressLine(now activities.AgentProgress) string {
	switch {
	case now.Waiting != "":
		return "waits: " + now.Waiting
	case len(now.Tools) == 0 && now.Turns == 0:
		return "starts"
	case len(now.Tools) == 0:
		return "thinks, " + plaintext.Count(now.Turns, "turn")
	}
	last := now.Tools[len(now.Tools)-1]
	call := plaintext.Compact(fmt.Sprintf("%s %s", last.Name, last.Input))
	switch last.State {
	case activities.ToolRunning:
		return call
	case activities.ToolFailed:
		return "thinks after a failed call: " + call
	case activities.ToolDone:
	}
	return "thinks after " + call
}
