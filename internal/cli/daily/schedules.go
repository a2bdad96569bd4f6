package daily

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/operations"
	"github.com/claudeops/claudeops/internal/program"
)

func (a *app) scheduleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Start chains by the clock",
		Long: "Schedule manages Temporal Schedules whose cycles each start one chain. A cycle ends with its chain, or when\n" +
			"that waits for long, for a person among others: such a chain goes on by itself and holds up no later cycle.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return program.Misuse(errNoScheduleCommand) },
	}
	cmd.AddCommand(
		a.createScheduleCommand(), a.updateScheduleCommand(), a.listSchedulesCommand(), a.describeScheduleCommand(),
		a.pauseScheduleCommand(), a.resumeScheduleCommand(), a.triggerScheduleCommand(), a.deleteScheduleCommand(),
	)
	return cmd
}

var errNoScheduleCommand = errors.New("say what to do with schedules: create, update, list, describe, pause, resume, trigger or delete")

// changed is the output of a command that changes a schedule.
type changed struct {
	ID   string `json:"schedule_id"`
	Done string `json:"done"`
}

// printChanged prints what was done to a schedule, if err is nil.
func (a *app) printChanged(id, done string, err error) error {
	if err != nil {
		return err
	}
	return a.Print(changed{id, done}, func(w io.Writer) { _, _ = fmt.Fprintf(w, "Schedule %s: %s.\n", id, done) })
}

func (a *app) listSchedulesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List schedules",
		Args:  console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := a.Operations.Schedules.List(cmd.Context())
			if err != nil {
				return err
			}
			return a.Print(rows, func(w io.Writer) { writeSchedules(w, rows) })
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
			if err != nil {
				return err
			}
			return a.Print(detail, func(w io.Writer) { writeSchedule(w, detail) })
		},
	}
}

func (a *app) pauseScheduleCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "pause ID",
		Short: "Let a schedule start nothing until it is resumed; what runs goes on",
		Args:  console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.printChanged(args[0], "paused", a.Operations.Schedules.Pause(cmd.Context(), args[0], note))
		},
	}
	cmd.Flags().StringVar(&note, "note", "paused with starter", "why, for others to read")
	return cmd
}

func (a *app) resumeScheduleCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Let a paused schedule start cycles again",
		Args:  console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.printChanged(args[0], "resumed", a.Operations.Schedules.Resume(cmd.Context(), args[0], note))
		},
	}
	cmd.Flags().StringVar(&note, "note", "resumed with starter", "why, for others to read")
	return cmd
}

func (a *app) triggerScheduleCommand() *cobra.Command {
	var overlap string
	cmd := &cobra.Command{
		Use:   "trigger ID",
		Short: "Start a cycle now, also of a paused schedule",
		Args:  console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.printChanged(args[0], "triggered", a.Operations.Schedules.Trigger(cmd.Context(), args[0], overlap))
		},
	}
	cmd.Flags().StringVar(&overlap, "overlap", "", "what if a cycle still runs (default: as the schedule says): "+operations.OverlapNames())
	return cmd
}

func (a *app) deleteScheduleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID",
		Short: "Delete a schedule; what runs goes on",
		Args:  console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.printChanged(args[0], "deleted", a.Operations.Operations.Schedules.Delete(cmd.Context(), args[0]))
		},
	}
}
