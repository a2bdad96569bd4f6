package incidents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/program"
	"github.com/claudeops/claudeops/internal/store"
)

func (a *app) closeCommand() *cobra.Command {
	var actor, reason string
	cmd := &cobra.Command{
		Use:   "close ID",
		Short: "Close an incident because its fault is gone",
		Long: "Close resolves an open incident, named by its ID or its number, and records who closed it and why.\n\n" +
			"It only changes the record. A chain that waits or repairs because of the incident continues, and close names it:\n" +
			"answer its gate, or end it with `starter cancel`. If a look finds the fault again within 30 days, the incident\n" +
			"returns.\n\n" +
			"In JSON it prints the incident as `starter incidents show` does.",
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.close(cmd.Context(), args[0], store.IncidentClosing{Actor: a.Actor(actor), Reason: reason})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&actor, "actor", "", "who closes it, for the record (default: the user)")
	flags.StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}

func (a *app) close(ctx context.Context, given string, closing store.IncidentClosing) (err error) {
	id, err := incidentID(given)
	if err == nil {
		err = checkClosing(closing)
	}
	if err != nil {
		return program.Misuse(err)
	}
	records, _, err := a.records(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	closing.Actor, closing.Reason = a.MaskText(closing.Actor), a.MaskText(closing.Reason)
	closing.At = a.Clock().UTC().Truncate(time.Millisecond)
	incident, err := records.CloseIncident(ctx, id, closing)
	view := a.view(incident, a.Clock())
	if errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("%s is resolved already (%s); nothing was changed", id, resolutionOf(a.Clock, &view))
	}
	if err != nil {
		return explained(id, err)
	}
	return a.Print(view, func(w io.Writer) { writeClosed(w, a.Clock, &view) })
}

func checkClosing(closing store.IncidentClosing) error {
	if length := utf8.RuneCountInString(closing.Reason); length > escalation.MaxClosingReason {
		return fmt.Errorf("--reason has %d characters, and at most %d are allowed", length, escalation.MaxClosingReason)
	}
	return escalation.CheckActor(closing.Actor)
}

// writeClosed names the closed incident, and the chains that still work on the incident.
func writeClosed(w io.Writer, clock console.Clock, incident *View) {
	_, _ = fmt.Fprintf(w, "%s is closed (%s: %s).\n",
		incident.ID, servicesOf(incident, 200), console.Printable(incident.Summary, maxSummary))
	for i := range incident.Chains {
		chain := &incident.Chains[i]
		answer, end := console.AnswerCommand(chain.ChainID), console.EndCommand(chain.ChainID)
		switch chain.Status {
		case escalation.ChainWaiting:
			_, _ = fmt.Fprintf(w, "\nChain %s still %s: %s.\n", console.PrintableID(chain.ChainID), statusOf(clock, chain),
				console.Printable(chain.Reason, 300))
			_, _ = fmt.Fprintf(w, "If it waits at a gate, answer that with: %s\n"+
				"Otherwise it continues after the wait. End it with: %s\n", answer, end)
		case escalation.ChainRepairing:
			_, _ = fmt.Fprintf(w, "\nChain %s still repairs it, and continues. End it with: %s\n",
				console.PrintableID(chain.ChainID), end)
		case escalation.ChainLooking, escalation.ChainEnded:
		}
	}
}
