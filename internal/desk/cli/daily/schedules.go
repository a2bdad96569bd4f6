package daily

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
)

func (a *app) scheduleCommand() *cobra.Command {
	return console.Parent(&cobra.Command{
		Use:   "schedule",
		Short: "Start chains by the clock",
		Long: "Schedule manages Temporal Schedules whose cycles each start one chain. A cycle ends with its chain, " +
			"or when\nthat waits for long, for a person among others: such a chain goes on by itself and holds up no " +
			"later cycle.",
	}, "schedules",
		a.createScheduleCommand(), a.updateScheduleCommand(), a.listSchedulesCommand(), a.describeScheduleCommand(),
		a.pauseScheduleCommand(), a.resumeScheduleCommand(), a.triggerScheduleCommand(), a.deleteScheduleCommand(),
	)
}

func (a *app) listSchedulesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List schedules",
		Args:  console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := a.Operations.Schedules.List(cmd.Context())
			return console.PrintResult(a.Console, rows, err, writeSchedules)
		},
	}
}

func (a *app) describeScheduleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe ID",
		Short: "Show a schedule, what it has started and what comes next",
		Args:  console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			detail, err := a.Operations.Schedules.Get(cmd.Context(), args[0])
			return console.PrintResult(a.Console, detail, err, func(w io.Writer, detail operations.ScheduleDetail) {
				writeSchedule(w, detail, 0)
			})
		},
	}
}

// changedSchedule is the output of a command that changes a schedule.
type changedSchedule struct {
	ID   string `json:"schedule_id"`
	Done string `json:"done"`
}

// changeCommand returns cmd, which changes one schedule. The parameter done says what change has done.
func (a *app) changeCommand(
	cmd *cobra.Command, done string, change func(ctx context.Context, id string) error,
) *cobra.Command {
	cmd.Args = console.OneArgument
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := change(cmd.Context(), args[0])
		return console.PrintResult(a.Console, changedSchedule{args[0], done}, err,
			func(w io.Writer, changed changedSchedule) {
				_, _ = fmt.Fprintf(w, "Schedule %s: %s.\n", changed.ID, changed.Done)
			})
	}
	return cmd
}

func (a *app) pauseScheduleCommand() *cobra.Command {
	var note string
	cmd := a.changeCommand(&cobra.Command{
		Use:   "pause ID",
		Short: "Let a schedule start nothing until it is resumed; what runs goes on",
	}, "paused", func(ctx context.Context, id string) error { return a.Operations.Schedules.Pause(ctx, id, note) })
	cmd.Flags().StringVar(&note, "note", "paused with claudeops", "why, for others to read")
	return cmd
}

func (a *app) resumeScheduleCommand() *cobra.Command {
	var note string
	cmd := a.changeCommand(&cobra.Command{
		Use:   "resume ID",
		Short: "Let a paused schedule start cycles again",
	}, "resumed", func(ctx context.Context, id string) error { return a.Operations.Schedules.Resume(ctx, id, note) })
	cmd.Flags().StringVar(&note, "note", "resumed with claudeops", "why, for others to read")
	return cmd
}

func (a *app) triggerScheduleCommand() *cobra.Command {
	var overlap string
	cmd := a.changeCommand(&cobra.Command{
		Use:   "trigger ID",
		Short: "Start a cycle now, also of a paused schedule",
	}, "triggered", func(ctx context.Context, id string) error {
		return a.Operations.Schedules.Trigger(ctx, id,
			overlap)
	})
	cmd.Flags().StringVar(&overlap, "overlap", "",
		"what if a cycle still runs (default: as the schedule says): "+operations.OverlapNames())
	return cmd
}

func (a *app) deleteScheduleCommand() *cobra.Command {
	return a.changeCommand(&cobra.Command{
		Use:   "delete ID",
		Short: "Delete a schedule; what runs goes on",
	}, "deleted", func(ctx context.Context, id string) error {
		return a.Operations.Operations.Schedules.Delete(ctx,
			id)
	})
}
