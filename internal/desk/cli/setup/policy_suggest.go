package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/records/store"
)

const (
	// suggestSince is the default of --since.
	suggestSince = 30 * 24 * time.Hour
	// maxDenied limits how many denied calls suggest reads.
	maxDenied = 10_000
)

func (a *app) suggestGrantsCommand() *cobra.Command {
	var since time.Duration
	var dir string
	cmd := &cobra.Command{
		Use:   "suggest",
		Short: "Suggest grants for the calls that were denied; nothing is changed",
		Long: "Suggest reads the recorded denials and prints the narrowest grants that would have let these calls " +
			"pass, each with its\nrisk, as a policy that extends the built-in one. Each grant was tried on the " +
			"guard. It suggests nothing that never,\nprivate, secrets or protected denies, no program that runs " +
			"others, and at Tier 1 nothing that changes a service.\nAccept what you want: copy it to the file that " +
			"CLAUDEOPS_POLICY_FILE names.",
		Example: "  claudeops policy suggest --since 168h",
		Args:    console.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.suggestGrants(cmd.Context(), since, dir) },
	}
	cmd.Flags().DurationVar(&since, "since", suggestSince, "look at the denials of this time")
	addDirFlag(cmd, &dir)
	return cmd
}

// suggestion is one row of the result of `policy suggest`.
type suggestion struct {
	Suggestion

	Times int       `json:"times"`
	Last  time.Time `json:"last"`
	// Chain is the latest chain with such a call, and Instead how it ended.
	Chain   string `json:"chain_id"`
	Instead string `json:"instead,omitempty"`
}

func (a *app) suggestGrants(ctx context.Context, since time.Duration, dir string) error {
	if since <= 0 {
		return program.Misuse(fmt.Errorf("--since is %s, and must be a time in the past, such as 168h", since))
	}
	checker, err := a.Operations.Policy.Checker(dir)
	if err != nil {
		return err
	}
	records, _, err := a.Operations.OpenRecords(ctx)
	if err != nil {
		return err
	}
	denied, err := records.Denied(ctx, a.Clock().Add(-since), maxDenied)
	if err != nil {
		return err
	}
	calls := make([]guard.Call, len(denied))
	for i, decision := range denied {
		calls[i] = guard.Call{
			Tier: int(decision.Tier), Tool: decision.Tool, Input: json.RawMessage(decision.Input),
			Place: checker.Place,
		}
	}
	suggestions := []suggestion{}
	for _, found := range (suggester{checker.Guard, checker.Policy}).suggestions(calls) {
		latest := denied[found.Calls[0]] // the latest comes first
		row := suggestion{Suggestion: found, Times: len(found.Calls), Last: latest.At, Chain: latest.ChainID}
		if row.Instead, err = endOf(ctx, records, latest.ChainID); err != nil {
			return err
		}
		row.Example = a.Operations.Masked(row.Example)
		suggestions = append(suggestions, row)
	}
	return a.Print(suggestions, func(w io.Writer) { a.writeSuggestions(w, suggestions, len(denied)) })
}

// endOf says how a chain ended; "" if it runs, or nobody knows.
func endOf(ctx context.Context, records *store.Store, chainID string) (string, error) {
	events, err := records.Events(ctx, chainID)
	if err != nil {
		return "", err
	}
	end := ""
	for _, event := range events {
		if event.Kind == escalation.EventChainEnded {
			end = event.Message
		}
	}
	return end, nil
}

func (a *app) writeSuggestions(w io.Writer, suggestions []suggestion, denied int) {
	if len(suggestions) == 0 {
		_, _ = fmt.Fprintf(w, "# %d calls were denied. There is nothing to suggest.\n", denied)
		return
	}
	_, _ = fmt.Fprintf(w, "# Suggested for %d denied calls. Remove what you do not accept.\n", denied)
	_, _ = io.WriteString(w, "version: 1\nextends: default\n")
	var section []string
	for _, s := range sorted(suggestions) {
		for depth, key := range s.Section {
			if depth >= len(section) || section[depth] != key {
				section = append(section[:min(depth, len(section))], key)
				_, _ = fmt.Fprintf(w, "%s%s:\n", strings.Repeat("  ", depth), key)
			}
		}
		indent := strings.Repeat("  ", len(s.Section))
		_, _ = fmt.Fprintf(w, "%s# %s: denied in %s at Tier %d, last at %s: %s\n", indent,
			console.Printable(s.What, 200),
			plaintext.Count(s.Times, "call"), s.Tier, a.Clock.Moment(s.Last), console.Printable(s.Example, 200))
		if s.Instead != "" {
			_, _ = fmt.Fprintf(w, "%s# Instead: %s (%s)\n", indent, console.Printable(s.Instead, 200),
				console.Printable(s.Chain, 100))
		}
		_, _ = fmt.Fprintf(w, "%s# Risk: %s\n%s- %s\n", indent, console.Printable(s.Risk, 300), indent, s.Grant)
		if s.Wider != "" {
			_, _ = fmt.Fprintf(w, "%s# or wider: %s\n", indent, s.Wider)
		}
	}
}

// sorted returns suggestions by their sections, and within a section the most frequent first.
func sorted(suggestions []suggestion) []suggestion {
	all := slices.Clone(suggestions)
	slices.SortStableFunc(all, func(x, y suggestion) int { return slices.Compare(x.Section, y.Section) })
	return all
}
