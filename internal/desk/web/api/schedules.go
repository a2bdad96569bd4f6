package api

import (
	"context"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
)

const schedulesTag = "schedules"

var (
	listSchedules = route[Page, scheduleList]{
		role: access.View, pattern: "GET /schedules", id: "listSchedules", summary: "List schedules", tag: schedulesTag,
	}
	getSchedule = route[SchedulePath, operations.ScheduleDetail]{
		role: access.View, pattern: "GET /schedules/{schedule_id}", id: "getSchedule", tag: schedulesTag,
		summary: "Get a schedule, what it has started and what comes next",
	}
	pauseSchedule = route[noteRequest, changedSchedule]{
		role: access.Operate, pattern: "POST /schedules/{schedule_id}/pause", id: "pauseSchedule", tag: schedulesTag,
		summary: "Let a schedule start nothing until it is resumed",
	}
	resumeSchedule = route[noteRequest, changedSchedule]{
		role: access.Operate, pattern: "POST /schedules/{schedule_id}/resume", id: "resumeSchedule", tag: schedulesTag,
		summary: "Let a paused schedule start cycles again",
	}
	triggerSchedule = route[triggerRequest, changedSchedule]{
		role: access.Operate, pattern: "POST /schedules/{schedule_id}/trigger", id: "triggerSchedule",
		tag: schedulesTag, summary: "Start a cycle now, also of a paused schedule",
	}
)

func (a *API) registerSchedules(r routes) {
	schedules := a.operations.Schedules
	add(r, listSchedules, func(ctx context.Context, in *Page) (list scheduleList, err error) {
		list.Schedules, err = schedules.List(ctx)
		if err == nil {
			list.Schedules, list.Next, err = cut(list.Schedules, *in,
				func(schedule operations.Schedule) string { return schedule.ID })
		}
		return list, err
	})
	add(r, getSchedule, func(ctx context.Context, in *SchedulePath) (operations.ScheduleDetail, error) {
		return schedules.Get(ctx, string(in.ID))
	})
	add(r, pauseSchedule, func(ctx context.Context, in *noteRequest) (changedSchedule, error) {
		return changedSchedule{string(in.ID), "paused"}, schedules.Pause(ctx, string(in.ID), in.note())
	})
	add(r, resumeSchedule, func(ctx context.Context, in *noteRequest) (changedSchedule, error) {
		return changedSchedule{string(in.ID), "resumed"}, schedules.Resume(ctx, string(in.ID), in.note())
	})
	add(r, triggerSchedule, func(ctx context.Context, in *triggerRequest) (changedSchedule, error) {
		overlap := ""
		if in.Body != nil {
			overlap = in.Body.Overlap
		}
		if err := access.MayStart(ctx); err != nil {
			return changedSchedule{}, err
		}
		return changedSchedule{string(in.ID), "triggered"}, schedules.Trigger(ctx, string(in.ID), overlap)
	})
}

// SchedulePath is the schedule that a path names.
type SchedulePath struct {
	ID temporalID `path:"schedule_id" maxLength:"1000" doc:"The ID of a schedule."`
}

// scheduleList is a page of schedules.
type scheduleList struct {
	Schedules []operations.Schedule `json:"schedules"`
	Next      string                `json:"next,omitempty"`
}

// noteRequest changes a schedule, with a note.
type noteRequest struct {
	SchedulePath

	Body *noteRequestBody
}

type noteRequestBody struct {
	Note string `json:"note,omitempty" doc:"Why, for others to read."`
}

func (r *noteRequest) note() string {
	if r.Body == nil {
		return ""
	}
	return r.Body.Note
}

// triggerRequest starts a cycle.
type triggerRequest struct {
	SchedulePath

	Body *triggerRequestBody
}

type triggerRequestBody struct {
	Overlap string `json:"overlap,omitempty" doc:"What if a cycle still runs; by default as the schedule says."`
}

// changedSchedule is the answer to a change of a schedule.
type changedSchedule struct {
	ID   string `json:"schedule_id"`
	Done string `json:"done"`
}

// Schedules does through the API what operations.Schedules does.
type Schedules struct{ client *Client }

// List returns the schedules.
func (s Schedules) List(ctx context.Context) ([]operations.Schedule, error) {
	all := []operations.Schedule{}
	err := readPages(0, func(page Page) (int, string, error) {
		list, err := listSchedules.call(ctx, s.client, page)
		all = append(all, list.Schedules...)
		return len(list.Schedules), list.Next, err
	})
	return all, err
}

// Get returns a schedule, what it has started and what comes next.
func (s Schedules) Get(ctx context.Context, id string) (operations.ScheduleDetail, error) {
	return getSchedule.call(ctx, s.client, SchedulePath{temporalID(id)})
}

// Pause lets a schedule start nothing until it is resumed.
func (s Schedules) Pause(ctx context.Context, id, note string) error {
	_, err := pauseSchedule.call(ctx, s.client, noteRequest{SchedulePath{temporalID(id)}, &noteRequestBody{note}})
	return err
}

// Resume lets a paused schedule start cycles again.
func (s Schedules) Resume(ctx context.Context, id, note string) error {
	_, err := resumeSchedule.call(ctx, s.client, noteRequest{SchedulePath{temporalID(id)}, &noteRequestBody{note}})
	return err
}

// Trigger starts a cycle now.
func (s Schedules) Trigger(ctx context.Context, id, overlap string) error {
	_, err := triggerSchedule.call(ctx, s.client, triggerRequest{
		SchedulePath{temporalID(id)},
		&triggerRequestBody{overlap},
	})
	return err
}
