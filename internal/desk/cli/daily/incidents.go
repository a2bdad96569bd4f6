package daily

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

func (a *app) incidentsCommand() *cobra.Command {
	cmd := a.listIncidentsCommand("incidents")
	cmd.Short = "List, show, acknowledge or close incidents"
	cmd.Long = "An incident is one fault, over all the chains that meet it. Without a subcommand, incidents lists " +
		"the open ones.\nThe kind " + escalation.KindLookFailed +
		" means that looks with Tier 1 have no result, so nobody knows how the services are.\nThe records answer: " +
		"run it on the host that has them. Only close uses Temporal, to inform chains.\n\n" + incidentsHelp
	cmd.Example = "  claudeops incidents\n  claudeops incidents --all --service jellyfin\n  claudeops incidents show " +
		"7\n  claudeops incidents close 7 --actor ada --reason \"the disk is replaced\""
	cmd.AddCommand(a.listIncidentsCommand("list"), a.showIncidentCommand(), a.acknowledgeIncidentCommand(),
		a.snoozeIncidentCommand(), a.closeIncidentCommand())
	return cmd
}

const incidentsHelp = "" +
	"The list begins with the most severe open incidents, and of those with the one seen last. Resolved ones follow, " +
	"the\none resolved last first. The states are:\n\n" +
	"  open       no chain works on it\n" +
	"  repairing  a chain repairs it\n" +
	"  waiting    a chain waits for a person or a limit (`claudeops gate` lists the gates), or has ended because a " +
	"person must act\n  resolved   the fault is gone, or a person has closed the incident\n\n" +
	"In JSON each incident has the fields of `claudeops incidents show`."

func (a *app) listIncidentsCommand(name string) *cobra.Command {
	var f operations.IncidentFilter
	var limit int
	cmd := &cobra.Command{
		Use:   name,
		Short: "List incidents",
		Long:  incidentsHelp,
		Args:  console.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.listIncidents(cmd.Context(), f, limit) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.All, "all", false, "also incidents that are resolved")
	flags.StringVarP(&f.Service, "service", "s", "", "only incidents of this service")
	flags.StringVar(&f.State, "state", "", "only incidents in this state, such as waiting; resolved needs no --all")
	flags.IntVar(&limit, "limit", 100, "at most this many")
	return cmd
}

// maxCounted limits the incidents and memories that are only counted, because they are not shown.
const maxCounted = 500

func (a *app) listIncidents(ctx context.Context, f operations.IncidentFilter, limit int) error {
	if err := console.CheckLimit(limit, "incident"); err != nil {
		return err
	}
	f.Limit = limit + maxCounted
	found, err := a.Operations.Incidents.List(ctx, f)
	if err != nil {
		return err
	}
	return console.PrintFirst(a.Console, found, limit, func(w io.Writer, shown []operations.Incident) {
		writeIncidents(w, a.Clock, a.Width(), shown, f)
		if len(found) == f.Limit {
			_, _ = fmt.Fprint(w, "At least ")
		}
	})
}
