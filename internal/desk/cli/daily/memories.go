package daily

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
)

func (a *app) memoryCommand() *cobra.Command {
	cmd := a.listMemoriesCommand("memory")
	cmd.Short = "List, confirm or change what agents have learned"
	cmd.Long = "A memory is something learned that still holds in a month. Agents and conversations propose " +
		"candidates. A candidate\nreaches no prompt before a person confirms it, or a second incident shows the " +
		"same. The records answer: run it on\nthe host that has them, or with --server.\n\n" + memoriesHelp
	cmd.Example = "  claudeops memory\n  claudeops memory show 7\n  claudeops memory confirm 7\n" +
		"  claudeops memory add --service jellyfin --subject \"start order\" \"The NFS mount comes up after the " +
		"service.\"\n  claudeops memory export > MEMORY.md"
	cmd.AddCommand(
		a.listMemoriesCommand("list"), a.showMemoryCommand(), a.addMemoryCommand(), a.confirmMemoryCommand(),
		a.editMemoryCommand(), a.deleteMemoryCommand(), a.exportMemoriesCommand(),
	)
	return cmd
}

// addActor adds the flag --actor.
func addActor(flags *pflag.FlagSet, actor *string) {
	flags.StringVar(actor, "actor", "", "who does it, for the record (default: the user)")
}

const memoriesHelp = "The list begins with the candidates, the newest first. The trust is the least of the sources, " +
	"until a memory is\nconfirmed:\n\n" +
	"  person     a person has written or confirmed it\n" +
	"  incidents  two incidents have shown the same\n" +
	"  output     a model has proposed it, which may have read it in the output of commands, such as logs\n\n" +
	"In JSON each memory has the fields of `claudeops memory show`, without used_by."

// addMemoryFilter adds the flags that select memories.
func addMemoryFilter(cmd *cobra.Command, f *operations.MemoryFilter) {
	flags := cmd.Flags()
	flags.StringVar(&f.Kind, "kind", "", "only this kind: correction, discovery or remediation")
	flags.StringVarP(&f.Service, "service", "s", "", "only memories of this service")
	flags.StringVar(&f.Search, "search", "", "only memories with all of these words")
}

func (a *app) listMemoriesCommand(name string) *cobra.Command {
	var f operations.MemoryFilter
	var limit int
	cmd := &cobra.Command{
		Use:   name,
		Short: "List memories",
		Long:  memoriesHelp,
		Args:  console.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.listMemories(cmd.Context(), f, limit) },
	}
	addMemoryFilter(cmd, &f)
	cmd.Flags().StringVar(&f.Status, "status", "",
		"only candidate, confirmed or deleted (default: candidate and confirmed)")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most this many")
	return cmd
}

func (a *app) listMemories(ctx context.Context, f operations.MemoryFilter, limit int) error {
	if err := console.CheckLimit(limit, "memory"); err != nil {
		return err
	}
	f.Limit = limit + maxCounted
	found, err := a.Operations.Memories.List(ctx, f)
	if err != nil {
		return err
	}
	return console.PrintFirst(a.Console, found, limit, func(w io.Writer, shown []memory.Memory) {
		writeMemories(w, a.Width(), shown)
		if len(found) == f.Limit {
			_, _ = fmt.Fprint(w, "At least ")
		}
	})
}

func writeMemories(w io.Writer, width int, memories []memory.Memory) {
	if len(memories) == 0 {
		_, _ = fmt.Fprintln(w, "No memories.")
		return
	}
	lines := [][]string{{"MEMORY", "STATUS", "TRUST", "KIND", "SERVICE", "SUBJECT", "USED", "TEXT"}}
	for i := range memories {
		one := &memories[i]
		lines = append(lines, []string{
			one.ID, string(one.Status), string(one.Trust), string(one.Kind), serviceOf(one, 40),
			console.Printable(one.Subject, 40), fmt.Sprint(one.Uses), console.Printable(one.Text, 200),
		})
	}
	console.CutTable(w, lines, width)
}

// serviceOf returns the service of a memory; "all" if the memory concerns all services.
func serviceOf(m *memory.Memory, limit int) string {
	return cmp.Or(console.Printable(m.Service, min(limit, escalation.MaxServiceName)), "all")
}

func (a *app) exportMemoriesCommand() *cobra.Command {
	f := operations.MemoryFilter{Status: string(memory.StatusConfirmed)}
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print the confirmed memories as Markdown, or with -o json as JSON",
		Args:  console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := a.Operations.Memories.List(cmd.Context(), f)
			return console.PrintResult(a.Console, found, err, func(w io.Writer, found []memory.Memory) {
				_, _ = io.WriteString(w, memory.Markdown(found))
			})
		},
	}
	addMemoryFilter(cmd, &f)
	return cmd
}
