package daily

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/internal/plant/program"
)

func (a *app) addMemoryCommand() *cobra.Command {
	var content escalation.MemoryProposal
	var kind, actor string
	cmd := &cobra.Command{
		Use:   "add TEXT",
		Short: "Add a memory, which agents get at once",
		Long: "Add records a memory. You vouch for it, so it needs no confirmation. Write one sentence that still " +
			"holds in a month;\n\"all is well\" is refused. Without --service it concerns all services. If a " +
			"candidate says the same, add confirms it.",
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			content.Kind, content.Text = escalation.MemoryKind(kind), args[0]
			added, err := a.Operations.Memories.Add(cmd.Context(), content, a.Actor(actor))
			return a.printMemory(added, err)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&kind, "kind", string(escalation.MemoryDiscovery), "correction, discovery or remediation")
	flags.StringVarP(&content.Service, "service", "s", "", "the service that it is about (default: all services)")
	flags.StringVar(&content.Subject, "subject", "", "what it is about, in two or three words")
	addActor(flags, &actor)
	return cmd
}

const revisionHelp = "With --revision, as `claudeops memory show` prints it, nothing is changed if the memory has " +
	"changed since you read it."

// addRevision adds the flag --revision.
func addRevision(flags *pflag.FlagSet, revision *int) {
	flags.IntVar(revision, "revision", 0, "the revision that you have read (default: the present one)")
}

// seenMemory returns the memory that the arguments and the flags of cmd name.
func seenMemory(cmd *cobra.Command, given string, revision int) (operations.SeenMemory, error) {
	if cmd.Flags().Changed("revision") && revision < 1 {
		return operations.SeenMemory{}, program.Misuse(fmt.Errorf("--revision is %d; revisions count from 1", revision))
	}
	return operations.SeenMemory{Given: given, Revision: revision}, nil
}

func (a *app) confirmMemoryCommand() *cobra.Command {
	return a.decideMemoryCommand(&cobra.Command{
		Use:   "confirm ID",
		Short: "Confirm a candidate, so that agents get it",
		Long: "Confirm records that you vouch for a memory, named by its ID or its number. Read it first: what you " +
			"confirm is told to\nagents as something that a person has confirmed. It cannot widen what they may " +
			"do.\n\n" + revisionHelp,
	}, console.Memories.Confirm)
}

func (a *app) deleteMemoryCommand() *cobra.Command {
	return a.decideMemoryCommand(&cobra.Command{
		Use:   "delete ID",
		Short: "Delete a memory, so that agents do not get it any more",
		Long: "Delete takes a memory, named by its ID or its number, out of all prompts. For 90 days it stays in the " +
			"records: if an\nagent proposes it again, it stays deleted. `claudeops memory list --status deleted` " +
			"lists such memories.\n\n" + revisionHelp,
	}, console.Memories.Delete)
}

// decideMemoryCommand returns cmd with the arguments and flags of a decision on one memory.
func (a *app) decideMemoryCommand(
	cmd *cobra.Command,
	decide func(m console.Memories, ctx context.Context, seen operations.SeenMemory, actor string) (memory.Memory,
		error),
) *cobra.Command {
	var actor string
	var revision int
	cmd.Args = console.OneArgument
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		seen, err := seenMemory(cmd, args[0], revision)
		if err != nil {
			return err
		}
		decided, err := decide(a.Operations.Memories, cmd.Context(), seen, a.Actor(actor))
		return a.printMemory(decided, err)
	}
	addActor(cmd.Flags(), &actor)
	addRevision(cmd.Flags(), &revision)
	return cmd
}

func (a *app) editMemoryCommand() *cobra.Command {
	var kind, service, subject, text, actor string
	var revision int
	cmd := &cobra.Command{
		Use:   "edit ID",
		Short: "Change a memory, which also confirms it",
		Long: "Edit changes a memory, named by its ID or its number. What no flag names stays as it is. You vouch " +
			"for the result, so\nedit also confirms a candidate. The earlier texts stay among its sources. With " +
			"--service \"\" it concerns all services.\n\n" +
			revisionHelp,
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			given := func(flag string, value *string) *string {
				if cmd.Flags().Changed(flag) {
					return value
				}
				return nil
			}
			edit := operations.MemoryEdit{
				Service: given("service", &service), Subject: given("subject", &subject), Text: given("text", &text),
			}
			if given("kind", &kind) != nil {
				edit.Kind = new(escalation.MemoryKind(kind))
			}
			seen, err := seenMemory(cmd, args[0], revision)
			if err != nil {
				return err
			}
			edited, err := a.Operations.Memories.Edit(cmd.Context(), seen, edit, a.Actor(actor))
			return a.printMemory(edited, err)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&kind, "kind", "", "correction, discovery or remediation")
	flags.StringVarP(&service, "service", "s", "", "the service that it is about; empty for all services")
	flags.StringVar(&subject, "subject", "", "what it is about, in two or three words")
	flags.StringVar(&text, "text", "", "the memory, in one sentence")
	addActor(flags, &actor)
	addRevision(flags, &revision)
	return cmd
}

// printMemory prints a memory, if err is nil.
func (a *app) printMemory(m memory.Memory, err error) error {
	return console.PrintResult(a.Console, m, err, func(w io.Writer,
		m memory.Memory,
	) {
		writeMemory(w, a.Clock, a.Width(), &m)
	})
}
