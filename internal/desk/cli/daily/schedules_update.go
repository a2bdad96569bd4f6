package daily

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plant/embedded/crontime"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/workflows"
)

func (a *app) updateScheduleCommand() *cobra.Command {
	var o scheduleOptions
	cmd := &cobra.Command{
		Use:   "update ID",
		Short: "Change a schedule; what runs goes on",
		Long: "Update changes what the given flags say, and nothing else. --every or --cron replace all times of the " +
			"schedule; its\n--offset or --timezone stays. --model replaces the models of the tiers that it names, " +
			"and tier3= removes one.\nA schedule that is changed keeps its history, unlike one that is deleted and " +
			"created again.",
		Example: "  claudeops schedule update hourly --every 30m\n" +
			"  claudeops schedule update nightly --max-tier 3 --note 'repairs are allowed now'",
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := o.withHours(cmd.Flags().Changed, a.Environ)
			if err != nil {
				return program.Misuse(err)
			}
			return a.updateSchedule(cmd.Context(), args[0], &o, given)
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func (a *app) updateSchedule(ctx context.Context, id string, o *scheduleOptions, given func(flag string) bool) error {
	if err := o.check(id, given); err != nil {
		return program.Misuse(err)
	}
	if given("paused") {
		return program.Misuse(errors.New("--paused is for a new schedule: write `claudeops schedule pause ID`"))
	}
	said, err := o.Changes(a.Stdin)
	if err != nil {
		return program.Misuse(err)
	}
	said.Actor = o.actor
	o.note = a.Operations.MaskInput(o.note)
	c, cfg, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	schedule := c.ScheduleClient().GetHandle(ctx, id)
	err = schedule.Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(current client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			changed := current.Description.Schedule
			err := o.change(id, &changed, given, a.Clock())
			if err == nil {
				err = changeInput(changed.Action, said, given, c.Converter)
			}
			return &client.ScheduleUpdate{Schedule: &changed}, err
		},
	})
	if err != nil {
		return operations.ScheduleError(id, err)
	}
	described, err := schedule.Describe(ctx)
	if err != nil {
		return operations.ScheduleError(id, err)
	}
	detail := operations.DescribeSchedule(id, described, c.Converter)
	return a.Print(detail, func(w io.Writer) { writeSchedule(w, detail, cfg.Chain.MaxTier) })
}

// change changes a schedule as the given flags say, except for the input of its chains.
func (o *scheduleOptions) change(
	id string, schedule *client.Schedule, given func(flag string) bool, now time.Time,
) error {
	created, err := o.schedule("", "", workflows.ChainInput{})
	if err != nil {
		return err
	}
	crontime.Restore(schedule.Spec, marks)
	if err := o.changeTimes(schedule.Spec, given); err != nil {
		return program.Misuse(err)
	}
	if err := amend(id, schedule.Spec, now); err != nil {
		return err
	}
	if given("jitter") {
		schedule.Spec.Jitter = o.jitter
	}
	if given("overlap") {
		schedule.Policy.Overlap = created.Overlap
	}
	if given("catchup-window") {
		schedule.Policy.CatchupWindow = o.catchup
	}
	if given("pause-on-failure") {
		schedule.Policy.PauseOnFailure = o.pauseOnFailure
	}
	if given("note") {
		schedule.State.Note = o.note
	}
	return nil
}

// changeTimes changes when a schedule starts cycles. What the flags do not name stays, as long as it fits.
func (o *scheduleOptions) changeTimes(spec *client.ScheduleSpec, given func(flag string) bool) error {
	switch {
	case given("every"):
		offset := o.offset
		if !given("offset") && len(spec.Intervals) == 1 {
			offset = spec.Intervals[0].Offset
		}
		if offset >= o.every {
			return fmt.Errorf("the schedule has an offset of %s, which must be less than --every: give --offset, too",
				offset)
		}
		spec.Intervals = []client.ScheduleIntervalSpec{{Every: o.every, Offset: offset}}
		spec.Calendars, spec.TimeZoneName = nil, ""
	case given("cron"):
		spec.Intervals, spec.Calendars, spec.CronExpressions = nil, nil, o.expressions()
		if given("timezone") || strings.Contains(strings.Join(o.cron, " "), "TZ=") {
			spec.TimeZoneName = o.timezone
		}
	case given("offset"):
		if len(spec.Intervals) != 1 || o.offset >= spec.Intervals[0].Every {
			return errors.New("--offset must be less than the interval of the schedule: give --every, too")
		}
		spec.Intervals[0].Offset = o.offset
	case given("timezone"):
		if len(spec.Calendars) == 0 {
			return errors.New("--timezone is for a schedule with --cron: give --cron, too")
		}
		spec.TimeZoneName = o.timezone
	}
	return nil
}

// changeInput changes those fields of the input of a schedule's chains that the given flags describe. The parameter
// said holds their values.
func changeInput(
	action client.ScheduleAction, said workflows.ChainInput, given func(flag string) bool, data converter.DataConverter,
) error {
	starts, ok := action.(*client.ScheduleWorkflowAction)
	var input workflows.ChainInput
	if raw := operations.ScheduleInput(action, data); !ok || raw == nil || json.Unmarshal(raw, &input) != nil {
		return program.Misuse(errors.New("it starts no chains of this program: delete it, and create another one"))
	}
	input = console.Overlay(input, said, given)
	if given("actor") {
		input.Actor = said.Actor
	}
	if err := input.Validate(); err != nil {
		return program.Misuse(fmt.Errorf("the changed input is invalid: %w", err))
	}
	starts.Args = []any{input}
	return nil
}
