package schedules

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// Row is one schedule in a list.
type Row struct {
	ID     string    `json:"schedule_id"`
	When   string    `json:"when"`
	Paused bool      `json:"paused"`
	Note   string    `json:"note,omitempty"`
	LastAt time.Time `json:"last_at,omitzero"`
	// Next holds the times of the next cycles, soonest first; empty if no cycle is due.
	Next []time.Time `json:"next"`
}

// Detail is the result of `schedule describe` and `schedule create`.
type Detail struct {
	Row

	Jitter         escalation.Duration `json:"jitter"`
	Overlap        string              `json:"overlap"`
	CatchupWindow  escalation.Duration `json:"catchup_window"`
	PauseOnFailure bool                `json:"pause_on_failure"`
	// Actor is the name of the person in the input of each chain; empty if the input names nobody.
	Actor string `json:"actor,omitempty"`
	// Input is the input of each chain.
	Input json.RawMessage `json:"input,omitempty"`
	// Cycles counts the cycles that have started. Skipped counts the cycles that did not start because another cycle
	// was still running. Missed counts the cycles that did not start because Temporal was down.
	Cycles  int `json:"cycles"`
	Skipped int `json:"skipped"`
	Missed  int `json:"missed"`
	// Running and Recent hold the workflow IDs of cycles, oldest first. With the overlap policy allow_all, Temporal
	// does not report which cycles are running.
	Running []string `json:"running"`
	Recent  []string `json:"recent"`
}

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List schedules",
		Args:  console.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.listSchedules(cmd.Context()) },
	}
}

func (a *app) listSchedules(ctx context.Context) error {
	c, _, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	listed, err := c.ScheduleClient().List(ctx, client.ScheduleListOptions{})
	if err != nil {
		return fmt.Errorf("list schedules: %w", err)
	}
	rows := []Row{} // an empty list is [] in JSON
	for listed.HasNext() {
		entry, err := listed.Next()
		if err != nil {
			return fmt.Errorf("list schedules: %w", err)
		}
		if entry.WorkflowType.Name == workflows.CycleWorkflow { // a namespace may hold schedules of other programs
			rows = append(rows, rowOfEntry(entry))
		}
	}
	return a.Print(rows, func(w io.Writer) { writeSchedules(w, rows) })
}

func rowOfEntry(entry *client.ScheduleListEntry) Row {
	row := Row{
		ID: entry.ID, When: whenOf(entry.Spec), Paused: entry.Paused, Note: entry.Note, Next: upcoming(entry.NextActionTimes, entry.Paused),
	}
	if recent := entry.RecentActions; len(recent) > 0 {
		row.LastAt = recent[len(recent)-1].ActualTime
	}
	return row
}

// upcoming returns the times of the next cycles. For a paused schedule it returns none, although Temporal computes such
// times.
func upcoming(times []time.Time, paused bool) []time.Time {
	if paused || times == nil {
		return []time.Time{}
	}
	return times
}

func (a *app) describeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe ID",
		Short: "Show a schedule, what it has started and what comes next",
		Args:  console.OneArgument,
		RunE:  func(cmd *cobra.Command, args []string) error { return a.showSchedule(cmd.Context(), args[0]) },
	}
}

func (a *app) showSchedule(ctx context.Context, id string) error {
	c, _, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	described, err := c.ScheduleClient().GetHandle(ctx, id).Describe(ctx)
	if err != nil {
		return explainError(id, err)
	}
	detail := describeSchedule(id, described, c.Converter)
	return a.Print(detail, func(w io.Writer) { writeSchedule(w, detail) })
}

func describeSchedule(id string, described *client.ScheduleDescription, data converter.DataConverter) Detail {
	schedule, info := described.Schedule, described.Info
	detail := Detail{
		Row: Row{
			ID: id, When: whenOf(schedule.Spec), Paused: schedule.State.Paused, Note: schedule.State.Note,
			Next: upcoming(info.NextActionTimes, schedule.State.Paused),
		},
		Jitter:         escalation.Duration(schedule.Spec.Jitter),
		Overlap:        overlapName(schedule.Policy.Overlap),
		CatchupWindow:  escalation.Duration(schedule.Policy.CatchupWindow),
		PauseOnFailure: schedule.Policy.PauseOnFailure,
		Input:          inputOf(schedule.Action, data),
		Cycles:         info.NumActions,
		Skipped:        info.NumActionsSkippedOverlap,
		Missed:         info.NumActionsMissedCatchupWindow,
		Running:        []string{},
		Recent:         []string{},
	}
	detail.Actor = actorOf(detail.Input)
	for _, running := range info.RunningWorkflows {
		detail.Running = append(detail.Running, running.WorkflowID)
	}
	for _, action := range info.RecentActions {
		detail.LastAt = action.ActualTime
		if started := action.StartWorkflowResult; started != nil {
			detail.Recent = append(detail.Recent, started.WorkflowID)
		}
	}
	return detail
}

// inputOf returns the input of the schedule's chains; nil if the input is not JSON. Schedules of other programs can
// have such an input.
func inputOf(action client.ScheduleAction, data converter.DataConverter) json.RawMessage {
	started, ok := action.(*client.ScheduleWorkflowAction)
	if !ok || len(started.Args) == 0 {
		return nil
	}
	payload, ok := started.Args[0].(*commonpb.Payload)
	var input json.RawMessage
	if !ok || data.FromPayload(payload, &input) != nil {
		return nil
	}
	return input
}

// actorOf returns the name of the person in the input of a chain; empty if the input names nobody.
func actorOf(input json.RawMessage) string {
	var said struct {
		Actor string `json:"actor"`
	}
	if json.Unmarshal(input, &said) != nil {
		return "" // a schedule of another program can have an input of another form
	}
	return said.Actor
}

// whenOf describes when a schedule starts cycles.
func whenOf(spec *client.ScheduleSpec) string {
	if spec == nil {
		return ""
	}
	var parts []string
	for _, interval := range spec.Intervals {
		part := "every " + interval.Every.String()
		if interval.Offset > 0 {
			part += " with an offset of " + interval.Offset.String()
		}
		parts = append(parts, part)
	}
	for _, calendar := range spec.Calendars {
		if calendar.Comment == "" {
			calendar.Comment = "at times of a calendar"
		}
		parts = append(parts, calendar.Comment)
	}
	text := strings.Join(parts, " and ")
	if spec.TimeZoneName != "" {
		text += " (" + spec.TimeZoneName + ")"
	}
	return text
}
