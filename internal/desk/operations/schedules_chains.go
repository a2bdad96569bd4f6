package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// ScheduleRuns describes the latest chains of a schedule: Temporal remembers five in a list, and ten of one schedule.
type ScheduleRuns struct {
	// Last is the latest chain.
	Last Row `json:"last"`
	// Ended counts the chains that have ended, and Cost is what one of them has cost on average.
	Ended int `json:"ended"`
	escalation.Cost
}

const (
	// maxDescribed limits the schedules of a list that are asked for the input of their chains.
	maxDescribed = 50
	// maxNamed limits the chains that one query names.
	maxNamed = 200
)

// ScheduleMay says whether the chains of a schedule with an input may repair. The argument maxTier is the
// CLAUDEOPS_MAX_TIER of this program; 0 if the workers may have another one.
func ScheduleMay(input json.RawMessage, maxTier escalation.Tier) string {
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

// describeAll says of the schedules in a list whether their chains may repair. It leaves that empty for a schedule that
// cannot be read, and for those after maxDescribed.
func (s Schedules) describeAll(ctx context.Context, connection Connection, rows []Schedule) {
	for i := range rows[:min(len(rows), maxDescribed)] {
		described, err := connection.ScheduleClient().GetHandle(ctx, rows[i].ID).Describe(ctx)
		if err != nil {
			return // it was deleted meanwhile, or Temporal is away: the list stays as it is
		}
		rows[i].May = ScheduleMay(ScheduleInput(described.Schedule.Action, connection.Converter), 0)
	}
}

// addRuns adds the latest chains to schedules, if Temporal still knows them.
func (s Schedules) addRuns(ctx context.Context, connection Connection, schedules ...*Schedule) error {
	var named []string
	for _, schedule := range schedules {
		for _, cycle := range schedule.cycles {
			if len(named) < maxNamed {
				named = append(named, Quote(workflows.ChainOfCycle(cycle)))
			}
		}
	}
	if len(named) == 0 {
		return nil
	}
	query := chainTypes() + " AND WorkflowId IN (" + strings.Join(named, ", ") + ")"
	rows, err := List(ctx, connection, query, maxPage)
	if err != nil {
		return err
	}
	s.addRecords(ctx, rows)
	chains := map[string]Row{}
	for _, row := range rows {
		// Of a chain that has continued as new, its last run counts.
		if known, twice := chains[row.ID]; !twice || row.StartedAt.After(known.StartedAt) {
			chains[row.ID] = row
		}
	}
	for _, schedule := range schedules {
		for _, cycle := range schedule.cycles {
			if row, known := chains[workflows.ChainOfCycle(cycle)]; known {
				schedule.chains = append([]Row{row}, schedule.chains...)
			}
		}
		schedule.Runs = runsOf(schedule.chains)
	}
	return nil
}

// runsOf sums up chains, the latest first.
func runsOf(chains []Row) *ScheduleRuns {
	if len(chains) == 0 {
		return nil
	}
	runs := ScheduleRuns{Last: chains[0]}
	for _, row := range chains {
		if !row.EndedAt.IsZero() {
			runs.Ended++
			runs.CostUSD += row.CostUSD
			runs.CostEstimated = runs.CostEstimated || row.CostEstimated
		}
	}
	runs.CostUSD /= float64(max(runs.Ended, 1))
	return &runs
}
