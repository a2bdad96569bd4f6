package daily

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
	"github.com/claudeops/claudeops/workflows"
)

func writeSchedules(w io.Writer, rows []operations.Schedule) {
	if len(rows) == 0 {
		_, _ = fmt.Fprintln(w, "No schedules.")
		return
	}
	lines := [][]string{{"SCHEDULE", "WHEN", "NEXT", "LAST", "NOTE"}}
	for _, row := range rows {
		next := "-"
		switch {
		case row.Paused:
			next = "paused"
		case len(row.Next) > 0:
			next = localTime(row.Next[0])
		}
		lines = append(lines, []string{
			row.ID, console.Printable(row.When, 60), next, localTime(row.LastAt), console.Printable(row.Note, 60),
		})
	}
	console.Table(w, lines)
}

// writeSchedule writes a schedule. The argument maxTier is the CLAUDEOPS_MAX_TIER of this program; 0 if the workers may
// have another one.
func writeSchedule(w io.Writer, s operations.ScheduleDetail, maxTier escalation.Tier) {
	state := "active"
	if s.Paused {
		state = "paused"
	}
	if s.Note != "" {
		state += " (" + console.Printable(s.Note, 200) + ")"
	}
	lines := [][]string{
		{"Schedule", s.ID},
		{"State", state},
		{"When", console.Printable(s.When, 200)},
		{"Jitter", s.Jitter.String()},
		{"Overlap", s.Overlap},
		{"Catch-up window", s.CatchupWindow.String()},
		{"Pause on failure", fmt.Sprint(s.PauseOnFailure)},
		{"Actor", cmp.Or(console.Printable(s.Actor, escalation.MaxActor), "-")},
		{"Chains", mayOf(s.Input, maxTier)},
		{"Input", console.Printable(string(s.Input), 400)},
		{"Cycles", fmt.Sprintf("%d started, %d skipped because one still ran, %d missed", s.Cycles, s.Skipped,
			s.Missed)},
		{"Running", strings.Join(s.Running, ", ")},
		{"Last", localTime(s.LastAt)},
	}
	for i, next := range s.Next {
		if i == 3 {
			break
		}
		lines = append(lines, []string{"Next", localTime(next)})
	}
	console.Table(w, lines)
}

// mayOf says whether the chains of a schedule may repair. The argument maxTier is that of writeSchedule.
func mayOf(input json.RawMessage, maxTier escalation.Tier) string {
	var said workflows.ChainInput
	switch err := json.Unmarshal(input, &said); {
	case err != nil:
		return "-" // a schedule of another program
	case said.DryRun || said.MaxTier == escalation.TierObserve:
		return "look only, and change nothing"
	case maxTier == escalation.TierObserve:
		return "look only, as long as CLAUDEOPS_MAX_TIER is 1"
	case said.MaxTier != 0:
		return fmt.Sprintf("may repair, up to %s, if the workers permit it", said.MaxTier)
	default:
		return "may repair, as far as the workers permit it (CLAUDEOPS_MAX_TIER)"
	}
}

// localTime returns a time in the local zone; "-" for the zero time.
func localTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime) + " " + calendar.Zone(t.Local())
}
