package daily

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
)

func writeSchedules(w io.Writer, rows []operations.Schedule) {
	if len(rows) == 0 {
		_, _ = fmt.Fprintln(w, "No schedules.")
		return
	}
	lines := [][]string{{"SCHEDULE", "WHEN", "NEXT", "LAST", "OUTCOME", "A RUN", "CHAINS", "NOTE"}}
	for _, row := range rows {
		next := "-"
		switch {
		case row.Paused:
			next = "paused"
		case len(row.Next) > 0:
			next = localTime(row.Next[0])
		}
		may, _, _ := strings.Cut(row.May, ",")
		lines = append(lines, []string{
			row.ID, console.Printable(row.When, 60), next, localTime(row.LastAt), outcomeOf(row.Runs),
			runCost(row.Runs), cmp.Or(may, "-"), console.Printable(row.Note, 60),
		})
	}
	console.Table(w, lines)
}

// outcomeOf returns how the latest chain of a schedule ended, or its state.
func outcomeOf(runs *operations.ScheduleRuns) string {
	if runs == nil {
		return "-"
	}
	return cmp.Or(runs.Last.Outcome, runs.Last.State())
}

// runCost returns what a chain of a schedule costs.
func runCost(runs *operations.ScheduleRuns) string {
	if runs == nil || runs.Ended == 0 {
		return "-"
	}
	return runs.CostText()
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
		{"Chains", operations.ScheduleMay(s.Input, maxTier)},
		{"Input", console.Printable(string(s.Input), 400)},
		{"Cycles", fmt.Sprintf("%d started, %d skipped because one still ran, %d missed", s.Cycles, s.Skipped,
			s.Missed)},
		{"Running", strings.Join(s.Running, ", ")},
		{"Last", localTime(s.LastAt)},
		{"Outcome", outcomeOf(s.Runs)},
		{"A run", runCost(s.Runs)},
	}
	for i, next := range s.Next {
		if i == 3 {
			break
		}
		lines = append(lines, []string{"Next", localTime(next)})
	}
	console.Table(w, lines)
}

// localTime returns a time in the local zone; "-" for the zero time.
func localTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime) + " " + calendar.Zone(t.Local())
}
