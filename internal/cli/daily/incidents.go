package daily

import (
	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/escalation"
)

func (a *app) incidentsCommand() *cobra.Command {
	cmd := a.listIncidentsCommand("incidents")
	cmd.Short = "List, show or close incidents"
	cmd.Long = "An incident is one fault, over all the chains that meet it. Without a subcommand, incidents lists the open ones.\n" +
		"The kind " + escalation.KindLookFailed + " means that looks with Tier 1 have no result, so nobody knows how the services are.\n" +
		"The records answer: run it on the host that has them. Only close uses Temporal, to inform chains.\n\n" + incidentsHelp
	cmd.Example = "  starter incidents\n  starter incidents --all --service jellyfin\n  starter incidents show 7\n" +
		"  starter incidents close 7 --actor ada --reason \"the disk is replaced\""
	cmd.AddCommand(a.listIncidentsCommand("list"), a.showIncidentCommand(), a.closeIncidentCommand())
	return cmd
}
