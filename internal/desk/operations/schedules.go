package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// Schedule is one schedule in a list.
type Schedule struct {
	ID     string    `json:"schedule_id"`
	When   string    `json:"when"`
	Paused bool      `json:"paused"`
	Note   string    `json:"note,omitempty"`
	LastAt time.Time `json:"last_at,omitzero"`
	// Next holds the times of the next cycles, soonest first; empty if no cycle is due.
	Next []time.Time `json:"next"`
	// May says whether its chains may repair; empty if that is not known.
	May string `json:"may,omitempty"`
	// Runs describes its latest chains; nil if Temporal knows none.
	Runs *ScheduleRuns `json:"runs,omitempty"`

	// cycles holds the workflow IDs of the latest cycles, oldest first, and chains their chains, latest first.
	cycles []string
	chains []Row
}

// ScheduleDetail is a schedule, with what it has started.
type ScheduleDetail struct {
	Schedule

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
	// Chains holds the chains of the recent cycles that Temporal still knows, latest first.
	Chains []Row `json:"chains"`
}

// Schedules lists and changes schedules. A schedule starts cycles, and each cycle starts a chain.
type Schedules struct{ *backend }

// List returns the schedules of this program, with their latest chains.
func (s Schedules) List(ctx context.Context) ([]Schedule, error) {
	connection, _, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := s.list(ctx, connection)
	if err != nil {
		return nil, err
	}
	s.describeAll(ctx, connection, rows)
	all := make([]*Schedule, len(rows))
	for i := range rows {
		all[i] = &rows[i]
	}
	return rows, s.addRuns(ctx, connection, all...)
}

// list returns the schedules of this program without their chains.
func (s Schedules) list(ctx context.Context, connection Connection) ([]Schedule, error) {
	listed, err := connection.ScheduleClient().List(ctx, client.ScheduleListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	rows := []Schedule{} // an empty list is [] in JSON
	for listed.HasNext() {
		entry, err := listed.Next()
		if err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
		if entry.WorkflowType.Name == workflows.CycleWorkflow { // a namespace may hold schedules of other programs
			rows = append(rows, scheduleOf(entry))
		}
	}
	return rows, nil
}

// Get returns a schedule, what it has started and what comes next.
func (s Schedules) Get(ctx context.Context, id string) (ScheduleDetail, error) {
	connection, _, err := s.connect(ctx)
	if err != nil {
		return ScheduleDetail{}, err
	}
	described, err := connection.ScheduleClient().GetHandle(ctx, id).Describe(ctx)
	if err != nil {
		return ScheduleDetail{}, ScheduleError(id, err)
	}
	detail := DescribeSchedule(id, described, connection.Converter)
	detail.cycles = detail.Recent
	err = s.addRuns(ctx, connection, &detail.Schedule)
	detail.Chains = append(detail.Chains, detail.chains...)
	return detail, err
}

// Pause lets a schedule start nothing until it is resumed. The note says why, for others to read.
func (s Schedules) Pause(ctx context.Context, id, note string) error {
	return s.change(ctx, id, func(schedule client.ScheduleHandle) error {
		return schedule.Pause(ctx, client.SchedulePauseOptions{Note: s.maskInput(note)})
	})
}

// Resume lets a paused schedule start cycles again.
func (s Schedules) Resume(ctx context.Context, id, note string) error {
	return s.change(ctx, id, func(schedule client.ScheduleHandle) error {
		return schedule.Unpause(ctx, client.ScheduleUnpauseOptions{Note: s.maskInput(note)})
	})
}

// Trigger starts a cycle now, also of a paused schedule. The overlap policy says what happens if a cycle still runs;
// empty means that of the schedule.
func (s Schedules) Trigger(ctx context.Context, id, overlap string) error {
	options := client.ScheduleTriggerOptions{}
	if overlap != "" {
		policy, err := OverlapPolicy(overlap)
		if err != nil {
			return err
		}
		options.Overlap = policy
	}
	return s.change(ctx, id, func(schedule client.ScheduleHandle) error { return schedule.Trigger(ctx, options) })
}

// Delete deletes a schedule. What runs continues.
func (s Schedules) Delete(ctx context.Context, id string) error {
	return s.change(ctx, id, func(schedule client.ScheduleHandle) error { return schedule.Delete(ctx) })
}

// change calls the function change with the schedule that has the given ID.
func (s Schedules) change(ctx context.Context, id string, change func(client.ScheduleHandle) error) error {
	connection, _, err := s.connect(ctx)
	if err != nil {
		return err
	}
	if err := change(connection.ScheduleClient().GetHandle(ctx, id)); err != nil {
		return ScheduleError(id, err)
	}
	return nil
}

// ScheduleError converts Temporal's error about a schedule to an error for people.
func ScheduleError(id string, err error) error {
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return withKind(KindNotFound, fmt.Errorf("there is no schedule %s; `claudeops schedule list` shows those "+
			"that are", id))
	}
	if invalid, ok := errors.AsType[*serviceerror.InvalidArgument](err); ok {
		return Invalid(fmt.Errorf("schedule %s: Temporal refuses it: %s", id, line(invalid.Message, 300)))
	}
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return withKind(KindConflict, fmt.Errorf("schedule %s exists already: choose another ID, or delete it first",
			id))
	}
	return fmt.Errorf("schedule %s: %w", id, err)
}

func scheduleOf(entry *client.ScheduleListEntry) Schedule {
	row := Schedule{
		ID: entry.ID, When: whenOf(entry.Spec), Paused: entry.Paused, Note: entry.Note,
		Next: upcoming(entry.NextActionTimes, entry.Spec, entry.Paused),
	}
	if recent := entry.RecentActions; len(recent) > 0 {
		row.LastAt = recent[len(recent)-1].ActualTime
	}
	for _, action := range entry.RecentActions {
		if started := action.StartWorkflowResult; started != nil {
			row.cycles = append(row.cycles, started.WorkflowID)
		}
	}
	return row
}

// upcoming returns the times of the next cycles, without the second ones of intervals that start once. For a paused
// schedule it returns none, although Temporal computes such times.
func upcoming(times []time.Time, spec *client.ScheduleSpec, paused bool) []time.Time {
	next := []time.Time{}
	for _, at := range times {
		over := spec != nil && slices.ContainsFunc(spec.Intervals, func(i client.ScheduleIntervalSpec) bool {
			return i.Every >= OnceRepeated && at.Sub(time.Unix(0, 0)) >= 2*i.Every
		})
		if !paused && !over {
			next = append(next, at)
		}
	}
	return next
}

// DescribeSchedule converts Temporal's description of a schedule. The argument data decodes the input of its chains.
func DescribeSchedule(id string, described *client.ScheduleDescription, data converter.DataConverter) ScheduleDetail {
	schedule, info := described.Schedule, described.Info
	detail := ScheduleDetail{
		Schedule: Schedule{
			ID: id, When: whenOf(schedule.Spec), Paused: schedule.State.Paused, Note: schedule.State.Note,
			Next: upcoming(info.NextActionTimes, schedule.Spec, schedule.State.Paused),
		},
		Jitter:         escalation.Duration(schedule.Spec.Jitter),
		Overlap:        OverlapName(schedule.Policy.Overlap),
		CatchupWindow:  escalation.Duration(schedule.Policy.CatchupWindow),
		PauseOnFailure: schedule.Policy.PauseOnFailure,
		Input:          ScheduleInput(schedule.Action, data),
		Cycles:         info.NumActions,
		Skipped:        info.NumActionsSkippedOverlap,
		Missed:         info.NumActionsMissedCatchupWindow,
		Running:        []string{},
		Recent:         []string{},
		Chains:         []Row{},
	}
	detail.May = ScheduleMay(detail.Input, 0)
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

// ScheduleInput returns the input of the schedule's chains; nil if the input is not JSON. Schedules of other programs
// can have such an input.
func ScheduleInput(action client.ScheduleAction, data converter.DataConverter) json.RawMessage {
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

const (
	// OnceSkipped is the comment of calendars that make up for times that the clocks skip or repeat.
	OnceSkipped = "once, when the clocks skip a time"
	// OnceRepeated is the least length of intervals that do so. Each starts once, because it is longer than anything
	// lasts.
	OnceRepeated = 50 * 365 * 24 * time.Hour
)

// whenOf describes when a schedule starts cycles.
func whenOf(spec *client.ScheduleSpec) string {
	if spec == nil {
		return ""
	}
	var parts []string
	for _, interval := range spec.Intervals {
		if interval.Every >= OnceRepeated {
			continue
		}
		part := "every " + escalation.ShortDuration(interval.Every)
		if interval.Offset > 0 {
			part += " with an offset of " + escalation.ShortDuration(interval.Offset)
		}
		parts = append(parts, part)
	}
	for _, calendar := range spec.Calendars {
		if calendar.Comment == OnceSkipped {
			continue // not one of its times
		}
		if calendar.Comment == "" {
			calendar.Comment = "at times of a calendar"
		}
		parts = append(parts, calendar.Comment)
	}
	text := strings.Join(parts, " and ")
	if spec.TimeZoneName != "" {
		text += " (" + spec.TimeZoneName + ")"
	} else if len(spec.Calendars) > 0 {
		text += " (UTC)"
	}
	return text
}
