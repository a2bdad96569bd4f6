package daily

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

func (a *app) acknowledgeIncidentCommand() *cobra.Command {
	cmd, act := a.knowCommand(&cobra.Command{
		Use:   "acknowledge ID",
		Short: "Say that you take care of an incident: nobody is reminded of it",
		Long: "Acknowledge records who knows of an open incident. Reminders of its gate stop, until it becomes worse " +
			"or comes back.\nChains go on as before. The same command again changes the name and the note.",
	})
	cmd.Flags().BoolVar(&act.Withdrawn, "withdraw", false, "withdraw it, so that people are reminded again")
	return cmd
}

func (a *app) snoozeIncidentCommand() *cobra.Command {
	cmd, act := a.knowCommand(&cobra.Command{
		Use:   "snooze ID",
		Short: "Acknowledge an incident for a time, and be told of it at its end",
		Long: "Snooze acknowledges an open incident for a time. If it is still open then, people are notified. " +
			"`claudeops incidents\nacknowledge ID --withdraw` ends it early.",
	})
	cmd.Flags().DurationVar(&act.Snooze, "for", 8*time.Hour, "how long, at most "+
		escalation.ShortDuration(escalation.MaxSnooze))
	return cmd
}

// knowCommand returns cmd, which acknowledges an incident as its result act says.
func (a *app) knowCommand(cmd *cobra.Command) (_ *cobra.Command, act *operations.IncidentAcknowledging) {
	act = &operations.IncidentAcknowledging{}
	cmd.Args = console.OneArgument
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		act.Actor = a.Actor(act.Actor)
		return a.acknowledgeIncident(cmd.Context(), args[0], *act)
	}
	cmd.Flags().StringVar(&act.Actor, "actor", "", "who takes care, for the record (default: the user)")
	cmd.Flags().StringVar(&act.Note, "note", "", "for others to read")
	return cmd, act
}

func (a *app) acknowledgeIncident(ctx context.Context, given string, act operations.IncidentAcknowledging) error {
	incident, err := a.Operations.Incidents.Acknowledge(ctx, given, act)
	return console.PrintResult(a.Console, incident, err, func(w io.Writer, incident operations.Incident) {
		said := "no longer acknowledged"
		if incident.Acknowledged != nil {
			said = knownBy(a.Clock, incident.Acknowledged)
		}
		_, _ = fmt.Fprintf(w, "%s is %s.\n", incident.ID, said)
	})
}

// knownBy says who has acknowledged or snoozed an incident.
func knownBy(clock console.Clock, known *escalation.Acknowledgement) string {
	text := "acknowledged by " + console.Printable(known.Actor, escalation.MaxActor)
	if !known.Until.IsZero() {
		text = "snoozed by " + console.Printable(known.Actor, escalation.MaxActor) + " until " +
			clock.Moment(known.Until)
	}
	if known.Note != "" {
		text += ": " + console.Printable(known.Note, escalation.MaxClosingReason)
	}
	return text
}
