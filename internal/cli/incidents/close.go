package incidents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cli/chainclient"
	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/program"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/workflows"
)

func (a *app) closeCommand() *cobra.Command {
	var actor, reason string
	cmd := &cobra.Command{
		Use:   "close ID",
		Short: "Close an incident because its fault is gone",
		Long: "Close resolves an open incident, named by its ID or its number, and records who closed it and why.\n\n" +
			"A chain that waits or repairs because of the incident is told, and close names it. With\n" +
			"CLAUDEOPS_GATE_ON_HEALED=close, a chain that waits looks once more and ends if all is well. With keep, or if Temporal\n" +
			"cannot be reached, answer its gate, or end it with `starter cancel`. If a look finds the fault again within 30 days,\n" +
			"the incident returns.\n\n" +
			"In JSON it prints the incident as `starter incidents show` does, with told: the IDs of the chains that were told.",
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
	records, _, err := a.OpenRecords(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	closing.Actor, closing.Reason = a.MaskText(closing.Actor), a.MaskText(closing.Reason)
	closing.At = a.Clock().UTC().Truncate(time.Millisecond)
	incident, err := records.CloseIncident(ctx, id, closing)
	view := closedView{View: a.view(incident, a.Clock())}
	if errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("%s is resolved already (%s); nothing was changed", id, resolutionOf(a.Clock, &view.View))
	}
	if err != nil {
		return explained(id, err)
	}
	view.Told = a.tell(ctx, incident, closing)
	return a.Print(view, func(w io.Writer) { writeClosed(w, a.Clock, &view) })
}

// closedView is a closed incident in the output.
type closedView struct {
	View

	// Told holds the IDs of the chains that were told that the incident is closed.
	Told []string `json:"told,omitempty"`
}

// tell informs chains that the incident is closed: those that wait because of the incident, and those that repair it.
// It returns the IDs of the informed chains. For each other chain, it prints why it could not inform the chain.
func (a *app) tell(ctx context.Context, incident escalation.Incident, closing store.IncidentClosing) (told []string) {
	chains := slices.DeleteFunc(slices.Clone(incident.Chains), func(chain escalation.IncidentChain) bool {
		return !chain.AtWork()
	})
	if len(chains) == 0 {
		return nil
	}
	connection, _, err := a.Connect(ctx)
	if err != nil {
		_, _ = fmt.Fprintf(a.Stderr, "starter: the chains of %s could not be told: %v\n", incident.ID, console.PrintableError(err))
		return nil
	}
	defer connection.Close()
	news := workflows.IncidentSignal{
		IncidentID: incident.ID, Status: escalation.IncidentGone, Note: closing.Reason, Actor: closing.Actor,
	}
	for _, chain := range chains {
		if err := chainclient.SignalIncident(ctx, connection, chain.ChainID, news); err != nil {
			_, _ = fmt.Fprintf(a.Stderr, "starter: chain %s could not be told: %v\n",
				console.PrintableID(chain.ChainID), console.PrintableError(err))
			continue
		}
		told = append(told, chain.ChainID)
	}
	return told
}

func checkClosing(closing store.IncidentClosing) error {
	if length := utf8.RuneCountInString(closing.Reason); length > escalation.MaxClosingReason {
		return fmt.Errorf("--reason has %d characters, and at most %d are allowed", length, escalation.MaxClosingReason)
	}
	return escalation.CheckActor(closing.Actor)
}

// writeClosed names the closed incident, and the chains that still work on the incident.
func writeClosed(w io.Writer, clock console.Clock, incident *closedView) {
	_, _ = fmt.Fprintf(w, "%s is closed (%s: %s).\n",
		incident.ID, servicesOf(&incident.View, 200), console.Printable(incident.Summary, maxSummary))
	for i := range incident.Chains {
		chain := &incident.Chains[i]
		answer, end := console.AnswerCommand(chain.ChainID), console.EndCommand(chain.ChainID)
		was := "could not be told"
		if slices.Contains(incident.Told, chain.ChainID) {
			was = "was told"
		}
		switch chain.Status {
		case escalation.ChainWaiting:
			_, _ = fmt.Fprintf(w, "\nChain %s %s: %s.\nIt %s that the incident is closed.\n", console.PrintableID(chain.ChainID),
				statusOf(clock, chain), console.Printable(chain.Reason, 300), was)
			_, _ = fmt.Fprintf(w, "If it still waits at a gate, answer that with: %s\n"+
				"Otherwise it continues after the wait. End it with: %s\n", answer, end)
		case escalation.ChainRepairing:
			_, _ = fmt.Fprintf(w, "\nChain %s still repairs it, and continues. It %s that the incident is closed. End it with: %s\n",
				console.PrintableID(chain.ChainID), was, end)
		case escalation.ChainLooking, escalation.ChainEnded:
		}
	}
}
