package activities

import (
	"context"
	"fmt"
	"strings"
)

// ScheduleReader knows schedules.
type ScheduleReader interface {
	// Omitted returns how many cycles the schedule has left out since it was created.
	Omitted(ctx context.Context, scheduleID string) (OmittedCycles, error)
}

// OmittedCycles counts cycles of a schedule that did not take place.
type OmittedCycles struct {
	// Overlapped were left out because the cycle before still ran.
	Overlapped int `json:"overlapped"`
	// Late were left out because Temporal was away for longer than the catch-up window.
	Late int `json:"late"`
}

// Since is what was left out after earlier was counted. Counts of a schedule that was created
// anew begin again.
func (o OmittedCycles) Since(earlier OmittedCycles) OmittedCycles {
	if o.Overlapped < earlier.Overlapped || o.Late < earlier.Late {
		return o
	}
	return OmittedCycles{Overlapped: o.Overlapped - earlier.Overlapped, Late: o.Late - earlier.Late}
}

// Total is how many were left out.
func (o OmittedCycles) Total() int { return o.Overlapped + o.Late }

// String says why how many were left out.
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

// Schedules answers for schedules.
type Schedules struct {
	Reader ScheduleReader
}

// OmittedInput is a schedule.
type OmittedInput struct {
	ScheduleID string `json:"schedule_id"`
}

// Omitted returns how many cycles the schedule has left out.
func (s *Schedules) Omitted(ctx context.Context, input OmittedInput) (OmittedCycles, error) {
	return s.Reader.Omitted(ctx, input.ScheduleID)
}
