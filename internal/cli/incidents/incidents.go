// Package incidents holds the commands that list, show and close incidents. These commands read the records. Only the
// command that closes an incident connects to Temporal, to inform chains.
package incidents

import (
	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
)

// app implements the commands of this package.
type app struct{ *console.Console }

// Command returns `incidents`.
func Command(c *console.Console) *cobra.Command {
	a := &app{c}
	cmd := a.listCommand("incidents")
	cmd.Short = "List, show or close incidents"
	cmd.Long = "An incident is one fault, over all the chains that meet it. Without a subcommand, incidents lists the open ones.\n" +
		"The kind " + escalation.KindLookFailed + " means that looks with Tier 1 have no result, so nobody knows how the services are.\n" +
		"The records answer: run it on the host that has them. Only close uses Temporal, to inform chains.\n\n" + listHelp
	cmd.Example = "  starter incidents\n  starter incidents --all --service jellyfin\n  starter incidents show 7\n" +
		"  starter incidents close 7 --actor ada --reason \"the disk is replaced\""
	cmd.AddCommand(a.listCommand("list"), a.showCommand(), a.closeCommand())
	return cmd
}
