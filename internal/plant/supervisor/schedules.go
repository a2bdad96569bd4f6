package supervisor

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/activities"
)

// scheduleReader asks Temporal about schedules.
type scheduleReader struct{ client client.Client }

var _ activities.ScheduleReader = scheduleReader{}

// Omitted implements activities.ScheduleReader.
func (r scheduleReader) Omitted(ctx context.Context, scheduleID string) (activities.OmittedCycles, error) {
	described, err := r.client.ScheduleClient().GetHandle(ctx, scheduleID).Describe(ctx)
	if err != nil {
		return activities.OmittedCycles{}, fmt.Errorf("describe schedule %s: %w", scheduleID, err)
	}
	return activities.OmittedCycles{
		Overlapped: described.Info.NumActionsSkippedOverlap,
		Late:       described.Info.NumActionsMissedCatchupWindow,
		Created:    described.Info.CreatedAt,
	}, nil
}
