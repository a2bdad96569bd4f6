package daily

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) memoryCommand() *cobra.Command {
	cmd := a.listMemoriesCommand("memory")
	cmd.Short = "List, confirm or change what agents have learned"
	cmd.Long = "A memory is something learned that still holds in a month. Agents and conversations propose candidates. A candidate\n" +
		"reaches no prompt before a person confirms it, or a second incident shows the same. The records answer: run it on\n" +
		"the host that has them, or with --server.\n\n" + memoriesHelp
	cmd.Example = "  starter memory\n  starter memory show 7\n  starter memory confirm 7\n" +
		"  starter memory add --service jellyfin --subject \"start order\" \"The NFS mount comes up after the service.\"\n" +
		"  starter memory export > MEMORY.md"
	cmd.AddCommand(
		a.listMemoriesCommand("list"), a.showMemoryCommand(), a.addMemoryCommand(), a.confirmMemoryCommand(), a.editMemoryCommand(),
		a.deleteMemoryCommand(), a.exportMemoriesCommand(),
	)
	return cmd
}

// addActor adds the flag --actor.
func addActor(flags *pflag.FlagSet, actor *string) {
	flags.StringVar(actor, "actor", "", "who does it, for the record (default: the user)")
}
