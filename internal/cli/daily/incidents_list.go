package daily

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/operations"
	"github.com/claudeops/claudeops/internal/program"
)

const incidentsHelp = "" +
	"The list begins with the most severe open incidents, and of those with the one seen last. Resolved ones follow, the\n" +
	"one resolved last first. The states are:\n\n" +
	"  open       no chain works on it\n" +
	"  repairing  a chain repairs it\n" +
	"  waiting    a chain waits for a person or a limit (`starter gate` lists the gates), or has ended because a person must act\n" +
	"  resolved   the fault is gone, or a person has closed the incident\n\n" +
	"In JSON each incident has the fields of `starter incidents show`."

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

func (a *app) listIncidents(ctx context.Context, f operations.IncidentFilter, limit int) error {
	if limit < 1 {
		return program.Misuse(fmt.Errorf("--limit %d is less than one incident", limit))
	}
	found, err := a.Operations.Incidents.List(ctx, f)
	if err != nil {
		return err
	}
	shown := found[:min(limit, len(found))]
	return a.Print(shown, func(w io.Writer) {
		writeIncidents(w, a.Clock, a.Width(), shown, f)
		if more := len(found) - len(shown); more > 0 {
			_, _ = fmt.Fprintf(w, "%d more; see them with --limit\n", more)
		}
	})
}
