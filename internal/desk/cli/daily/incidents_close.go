package daily

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

func (a *app) closeIncidentCommand() *cobra.Command {
	var actor, reason string
	cmd := &cobra.Command{
		Use:   "close ID",
		Short: "Close an incident because its fault is gone",
		Long: "Close resolves an open incident, named by its ID or its number, and records who closed it and why.\n\n" +
			"A chain that waits or repairs because of the incident is told, and close names it. With\n" +
			"CLAUDEOPS_GATE_ON_HEALED=close, a chain that waits looks once more and ends if all is well. With keep, " +
			"or if Temporal\ncannot be reached, answer its gate, or end it with `claudeops cancel`. If a look finds " +
			"the fault again within 30 days,\nthe incident returns.\n\n" +
			"In JSON it prints the incident as `claudeops incidents show` does, with told: the IDs of the chains " +
			"that were told.",
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.closeIncident(cmd.Context(), args[0], store.IncidentClosing{Actor: a.Actor(actor), Reason: reason})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&actor, "actor", "", "who closes it, for the record (default: the user)")
	flags.StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}

func (a *app) closeIncident(ctx context.Context, given string, closing store.IncidentClosing) error {
	closed, err := a.Operations.Incidents.Close(ctx, given, closing)
	if operations.KindOf(err) == operations.KindConflict {
		return fmt.Errorf("%w (%s); nothing was changed", err, resolutionOf(a.Clock, &closed.Incident))
	}
	if err != nil {
		return err
	}
	for _, chain := range closed.Untold {
		if chain.ChainID == "" {
			_, _ = fmt.Fprintf(a.Stderr, "claudeops: the chains of %s could not be told: %s\n", closed.ID,
				chain.Problem)
			continue
		}
		_, _ = fmt.Fprintf(a.Stderr, "claudeops: chain %s could not be told: %s\n", console.PrintableID(chain.ChainID),
			chain.Problem)
	}
	return a.Print(closed, func(w io.Writer) { writeClosed(w, a.Clock, &closed) })
}

// writeClosed names the closed incident, and the chains that still work on the incident.
func writeClosed(w io.Writer, clock console.Clock, incident *operations.ClosedIncident) {
	_, _ = fmt.Fprintf(w, "%s is closed (%s: %s).\n",
		incident.ID, servicesOf(&incident.Incident, 200), console.Printable(incident.Summary, maxSummary))
	for i := range incident.Chains {
		chain := &incident.Chains[i]
		answer, end := console.AnswerCommand(chain.ChainID), console.EndCommand(chain.ChainID)
		was := "could not be told"
		if slices.Contains(incident.Told, chain.ChainID) {
			was = "was told"
		}
		switch chain.Status {
		case escalation.ChainWaiting:
			_, _ = fmt.Fprintf(w, "\nChain %s %s: %s.\nIt %s that the incident is closed.\n",
				console.PrintableID(chain.ChainID),
				chainStatus(clock, chain), console.Printable(chain.Reason, 300), was)
			_, _ = fmt.Fprintf(w, "If it still waits at a gate, answer that with: %s\n"+
				"Otherwise it continues after the wait. End it with: %s\n", answer, end)
		case escalation.ChainRepairing:
			_, _ = fmt.Fprintf(w, "\nChain %s still repairs it, and continues. It %s that the incident is closed. "+
				"End it with: %s\n",
				console.PrintableID(chain.ChainID), was, end)
		case escalation.ChainLooking, escalation.ChainEnded:
		}
	}
}
