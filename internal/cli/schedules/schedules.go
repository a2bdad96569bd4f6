// Package schedules holds the commands for schedules. A schedule starts cycles, and each cycle starts a chain.
package schedules

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/program"
)

// app implements the commands of this package.
type app struct{ *console.Console }

// Command returns the command `schedule`.
func Command(c *console.Console) *cobra.Command {
	a := &app{c}
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Start chains by the clock",
		Long: "Schedule manages Temporal Schedules whose cycles each start one chain. A cycle ends with its chain, or when\n" +
			"that waits for long, for a person among others: such a chain goes on by itself and holds up no later cycle.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return program.Misuse(errNoCommand) },
	}
	cmd.AddCommand(
		a.createCommand(), a.updateCommand(), a.listCommand(), a.describeCommand(),
		a.pauseCommand(), a.resumeCommand(), a.triggerCommand(), a.deleteCommand(),
	)
	return cmd
}

var errNoCommand = errors.New("say what to do with schedules: create, update, list, describe, pause, resume, trigger or delete")

// changed is the output of a command that changes a schedule.
type changed struct {
	ID   string `json:"schedule_id"`
	Done string `json:"done"`
}

// changeSchedule calls the function change with the schedule that has the given ID. Then it prints done, which
// describes the change.
func (a *app) changeSchedule(ctx context.Context, id, done string, change func(client.ScheduleHandle) error) error {
	c, _, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := change(c.ScheduleClient().GetHandle(ctx, id)); err != nil {
		return explainError(id, err)
	}
	return a.Print(changed{id, done}, func(w io.Writer) { _, _ = fmt.Fprintf(w, "Schedule %s: %s.\n", id, done) })
}

// explainError converts Temporal's error about a schedule to an error for people.
func explainError(id string, err error) error {
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return fmt.Errorf("there is no schedule %s; `starter schedule list` shows those that are", id)
	}
	if invalid, ok := errors.AsType[*serviceerror.InvalidArgument](err); ok {
		return program.Misuse(fmt.Errorf("schedule %s: Temporal refuses it: %s", id, console.Printable(invalid.Message, 300)))
	}
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return fmt.Errorf("schedule %s exists already: choose another ID, or delete it first", id)
	}
	return fmt.Errorf("schedule %s: %w", id, err)
}

func (a *app) pauseCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "pause ID",
		Short: "Let a schedule start nothing until it is resumed; what runs goes on",
		Args:  console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeSchedule(cmd.Context(), args[0], "paused", func(schedule client.ScheduleHandle) error {
				return schedule.Pause(cmd.Context(), client.SchedulePauseOptions{Note: a.MaskText(note)})
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "paused with starter", "why, for others to read")
	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Let a paused schedule start cycles again",
		Args:  console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeSchedule(cmd.Context(), args[0], "resumed", func(schedule client.ScheduleHandle) error {
				return schedule.Unpause(cmd.Context(), client.ScheduleUnpauseOptions{Note: a.MaskText(note)})
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "resumed with starter", "why, for others to read")
	return cmd
}

func (a *app) triggerCommand() *cobra.Command {
	var overlap string
	cmd := &cobra.Command{
		Use:   "trigger ID",
		Short: "Start a cycle now, also of a paused schedule",
		Args:  console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			options := client.ScheduleTriggerOptions{} // empty: Temporal uses the schedule's own policy
			if overlap != "" {
				policy, err := overlapPolicy(overlap)
				if err != nil {
					return program.Misuse(err)
				}
				options.Overlap = policy
			}
			return a.changeSchedule(cmd.Context(), args[0], "triggered", func(schedule client.ScheduleHandle) error {
				return schedule.Trigger(cmd.Context(), options)
			})
		},
	}
	cmd.Flags().StringVar(&overlap, "overlap", "", "what if a cycle still runs (default: as the schedule says): "+overlapNames())
	return cmd
}

func (a *app) deleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID",
		Short: "Delete a schedule; what runs goes on",
		Args:  console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeSchedule(cmd.Context(), args[0], "deleted", func(schedule client.ScheduleHandle) error {
				return schedule.Delete(cmd.Context())
			})
		},
	}
}
