package api

import (
	"context"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
)

const schedulesTag = "schedules"

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

	Body *struct {
		Note string `json:"note,omitempty" doc:"Why, for others to read."`
	}
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

	Body *struct {
		Overlap string `json:"overlap,omitempty" doc:"What if a cycle still runs; by default as the schedule says."`
	}
}

// changedSchedule is the answer to a change of a schedule.
type changedSchedule struct {
	ID   string `json:"schedule_id"`
	Done string `json:"done"`
}

func (a *API) registerSchedules(r routes) {
	schedules := a.operations.Schedules
	add(r, route{
		role: access.View, pattern: "GET /schedules", id: "listSchedules", summary: "List schedules", tag: schedulesTag,
	}, a.listSchedules)
	add(r, route{
		role: access.View, pattern: "GET /schedules/{schedule_id}", id: "getSchedule", tag: schedulesTag,
		summary: "Get a schedule, what it has started and what comes next",
	}, func(ctx context.Context, in *SchedulePath) (*result[operations.ScheduleDetail], error) {
		return resultOf(schedules.Get(ctx, string(in.ID)))
	})
	add(r, route{
		role: access.Operate, pattern: "POST /schedules/{schedule_id}/pause", id: "pauseSchedule", tag: schedulesTag,
		summary: "Let a schedule start nothing until it is resumed",
	}, func(ctx context.Context, in *noteRequest) (*result[changedSchedule], error) {
		return resultOf(changedSchedule{string(in.ID), "paused"}, schedules.Pause(ctx, string(in.ID), in.note()))
	})
	add(r, route{
		role: access.Operate, pattern: "POST /schedules/{schedule_id}/resume", id: "resumeSchedule", tag: schedulesTag,
		summary: "Let a paused schedule start cycles again",
	}, func(ctx context.Context, in *noteRequest) (*result[changedSchedule], error) {
		return resultOf(changedSchedule{string(in.ID), "resumed"}, schedules.Resume(ctx, string(in.ID), in.note()))
	})
	add(r, route{
		role: access.Operate, pattern: "POST /schedules/{schedule_id}/trigger", id: "triggerSchedule", tag: schedulesTag,
		summary: "Start a cycle now, also of a paused schedule",
	}, func(ctx context.Context, in *triggerRequest) (*result[changedSchedule], error) {
		overlap := ""
		if in.Body != nil {
			overlap = in.Body.Overlap
		}
		if err := access.MayStart(ctx); err != nil {
			return nil, err
		}
		return resultOf(changedSchedule{string(in.ID), "triggered"}, schedules.Trigger(ctx, string(in.ID), overlap))
	})
}

func (a *API) listSchedules(ctx context.Context, in *Page) (*result[scheduleList], error) {
	all, err := a.operations.Schedules.List(ctx)
	if err != nil {
		return nil, err
	}
	shown, next, err := cut(all, *in, func(schedule operations.Schedule) string { return schedule.ID })
	return resultOf(scheduleList{shown, next}, err)
}
