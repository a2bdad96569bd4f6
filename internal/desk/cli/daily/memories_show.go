package daily

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/internal/plaintext"
)

func (a *app) showMemoryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a memory, where it comes from, and which sessions have read it",
		Long: "Show shows one memory, named by its ID (memory-7) or its number (7).\n\n" +
			"In JSON: id, kind, service (none: all services), subject, text, status, trust, decided_by and " +
			"decided_at (of the\nconfirmation or deletion), caution (why a second incident does not confirm it), " +
			"revision, created_at, uses, last_used_at,\nsources, each with act, trust, at, person or chain_id and " +
			"session_id, incidents and the text after\nit, and used_by (the latest uses), each with chain_id, " +
			"session_id and at. Empty fields are left out.",
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := a.Operations.Memories.Get(cmd.Context(), args[0])
			return a.printMemory(found, err)
		},
	}
}

func writeMemory(w io.Writer, clock console.Clock, width int, m *memory.Memory) {
	write := func(label, text string) { console.WriteLabelled(w, fmt.Sprintf("%-10s", label), text, width) }
	write("Memory", m.ID)
	write("Status", memoryStatus(clock, m))
	write("Trust", string(m.Trust))
	write("Revision", fmt.Sprint(m.Revision))
	write("Kind", string(m.Kind))
	write("Service", serviceOf(m, escalation.MaxServiceName))
	write("Subject", console.Printable(m.Subject, escalation.MaxMemorySubject))
	write("Text", console.Printable(m.Text, escalation.MaxMemoryText))
	if m.Caution != "" && m.Status == memory.StatusCandidate {
		write("Caution", "only a person can confirm it, because "+m.Caution)
	}
	write("Used", usesOf(clock, m))
	for i := range m.Sources {
		label := ""
		if i == 0 {
			label = "Sources"
		}
		write(label, describeSource(clock, &m.Sources[i], m.Text))
	}
	for i := range m.UsedBy {
		label := ""
		if i == 0 {
			label = "Read by"
		}
		write(label, fmt.Sprintf("%s  chain %s", clock.DateTime(m.UsedBy[i].At),
			console.PrintableID(m.UsedBy[i].ChainID)))
	}
}

// memoryStatus describes the status of a memory, and who decided it.
func memoryStatus(clock console.Clock, m *memory.Memory) string {
	switch {
	case m.Status == memory.StatusCandidate:
		return "candidate; confirm it with: claudeops memory confirm " + strings.TrimPrefix(m.ID, "memory-")
	case m.DecidedBy == "":
		return fmt.Sprintf("%s at %s, because two incidents have shown it", m.Status, clock.Moment(m.DecidedAt))
	default:
		return fmt.Sprintf("%s at %s by %s", m.Status, clock.Moment(m.DecidedAt),
			console.Printable(m.DecidedBy, escalation.MaxActor))
	}
}

func usesOf(clock console.Clock, m *memory.Memory) string {
	if m.Uses == 0 {
		return "never"
	}
	return "by " + plaintext.Count(m.Uses, "session") + ", last at " + clock.Moment(m.LastUsedAt)
}

// describeSource describes what a person or a session did. If the memory's text was another one then, describeSource
// adds that.
func describeSource(clock console.Clock, source *memory.Source, text string) string {
	who := console.Printable(source.Person, escalation.MaxActor)
	if source.Person == "" {
		who = fmt.Sprintf("chain %s (%s)", console.PrintableID(source.ChainID), source.Trust)
	}
	line := fmt.Sprintf("%s  %s by %s", clock.DateTime(source.At), source.Act, who)
	if len(source.Incidents) > 0 {
		line += ", about " + console.Printable(strings.Join(source.Incidents, ", "), 200)
	}
	if source.Text != text {
		line += ": " + console.Printable(source.Text, escalation.MaxMemoryText)
	}
	return line
}
