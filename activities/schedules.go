package activities

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// ScheduleReader reads schedules.
type ScheduleReader interface {
	// Omitted returns how many cycles the schedule has omitted since it was created.
	Omitted(ctx context.Context, scheduleID string) (OmittedCycles, error)
}

// OmittedCycles counts the cycles that a schedule has omitted.
type OmittedCycles struct {
	// Overlapped counts the cycles omitted because the previous cycle was still running.
	Overlapped int `json:"overlapped"`
	// Late counts the cycles omitted because Temporal was unavailable for longer than the catch-up window.
	Late int `json:"late"`
	// Created is the time at which the schedule was created. A schedule that was deleted and created again begins to
	// count anew.
	Created time.Time `json:"created,omitzero"`
}

// Since returns how many cycles were omitted since an earlier count. If the schedule was created after the earlier
// count, Since returns o.
func (o OmittedCycles) Since(earlier OmittedCycles) OmittedCycles {
	if !o.Created.Equal(earlier.Created) || o.Overlapped < earlier.Overlapped || o.Late < earlier.Late {
		return o
	}
	return OmittedCycles{Overlapped: o.Overlapped - earlier.Overlapped, Late: o.Late - earlier.Late}
}

// Key identifies what is omitted so far, for the keys of notifications.
func (o OmittedCycles) Key() string {
	key := fmt.Sprintf("%d/%d", o.Overlapped, o.Late)
	if !o.Created.IsZero() {
		key += fmt.Sprintf("/%d", o.Created.UnixMilli())
	}
	return key
}

// Total returns the number of omitted cycles.
func (o OmittedCycles) Total() int { return o.Overlapped + o.Late }

// String describes how many cycles were omitted, and why.
func (o OmittedCycles) String() string {
	var parts []string
	if o.Overlapped > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped because the one before still ran", o.Overlapped))
	}
	if o.Late > 0 {
		parts = append(parts, fmt.Sprintf("%d missed while Temporal was away", o.Late))
	}
	return "cycles that did not take place: " + strings.Join(parts, ", ")
}

// Schedules reads schedules for the workflow Cycle.
type Schedules struct {
	Reader ScheduleReader
}

// OmittedInput names a schedule.
type OmittedInput struct {
	ScheduleID string `json:"schedule_id"`
}

// Omitted returns how many cycles the schedule has omitted since it was created.
func (s *Schedules) Omitted(ctx context.Context, input OmittedInput) (OmittedCycles, error) {
	return s.Reader.Omitted(ctx, input.ScheduleID)
}
