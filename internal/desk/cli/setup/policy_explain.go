package setup

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
)

func (a *app) explainTierCommand() *cobra.Command {
	var tier escalation.Tier
	cmd := &cobra.Command{
		Use:     "explain --tier TIER",
		Short:   "List in words what a tier may do",
		Example: "  claudeops policy explain --tier 1",
		Args:    console.NoArguments,
		RunE:    func(*cobra.Command, []string) error { return a.explainTier(tier) },
	}
	cmd.Flags().Var(console.TierFlag{Tier: &tier, Allowed: escalation.Tiers()}, "tier", "the tier")
	return cmd
}

func (a *app) explainTier(tier escalation.Tier) error {
	if tier == 0 {
		return program.Misuse(errNoTier)
	}
	explained, err := a.Operations.Policy.Explain(tier)
	return console.PrintResult(a.Console, explained, err, writeExplanation)
}

func writeExplanation(w io.Writer, e guard.Explanation) {
	origin := "It may do what is listed here, and nothing else."
	if e.Anything {
		origin = "It may do anything but what is listed here."
	}
	_, _ = fmt.Fprintf(w, "Tier %d. %s\n", e.Tier, origin)
	writeGrants(w, e)
	for _, list := range e.Lists() {
		_, _ = fmt.Fprintf(w, "\n%s\n", list.Title)
		for _, item := range list.Items {
			_, _ = fmt.Fprintf(w, "  %s\n", item)
		}
	}
}

// writeGrants lists the programs that agents are permitted to run. Below each program, it lists the permitted uses.
func writeGrants(w io.Writer, e guard.Explanation) {
	if len(e.Grants) == 0 {
		return
	}
	_, _ = fmt.Fprint(w, "\nPrograms, with their arguments, options, and conditions. X? may be left out, X+ is one "+
		"or several, X* any number.\n")
	before := ""
	for _, grant := range e.Merged() {
		if grant.Program != before {
			_, _ = fmt.Fprintf(w, "\n  %s\n", strings.ReplaceAll(grant.Program, "|", ", "))
			before = grant.Program
		}
		for i, line := range grant.Lines() {
			indent := "    "
			if i > 0 {
				indent = "        "
			}
			_, _ = fmt.Fprintf(w, "%s%s\n", indent, line)
		}
	}
}
