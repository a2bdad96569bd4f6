package setup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plant/embedded/crontime"
	"github.com/claudeops/claudeops/workflows"
)

// checkSchedules names the schedules that do not start once at a time that the clocks of their zone skip or repeat.
func checkSchedules(ctx context.Context, c client.Client, now time.Time) finding {
	const check = "schedules"
	listed, err := c.ScheduleClient().List(ctx, client.ScheduleListOptions{})
	if err != nil {
		return failed(check, fmt.Errorf("list them: %w", err))
	}
	var lacking []string
	marks := crontime.Marks{Comment: operations.OnceSkipped, Every: operations.OnceRepeated}
	for listed.HasNext() {
		entry, err := listed.Next()
		if err != nil {
			return failed(check, fmt.Errorf("list them: %w", err))
		}
		if entry.WorkflowType.Name != workflows.CycleWorkflow || entry.Spec == nil {
			continue
		}
		if lacks, err := crontime.Lacks(*entry.Spec, marks, now); err == nil && lacks {
			lacking = append(lacking, "`claudeops schedule update "+entry.ID+"`")
		}
	}
	if len(lacking) > 0 {
		return noted(check, "a time that the clocks skip or repeat within a year does not start once; renew them with "+
			strings.Join(lacking, ", "))
	}
	return passed(check, "start once also when the clocks change")
}
