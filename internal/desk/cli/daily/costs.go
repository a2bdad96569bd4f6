package daily

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plaintext"
)

func (a *app) costsCommand() *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "costs",
		Short: "Add up what sessions have cost, by day, tier, model, trigger and service",
		Long: "Costs adds up the sessions that started in a time, in US dollars. Reports that were replaced after a " +
			"reset count,\nbecause they were paid. A running session counts as soon as it has ended. The cost of a " +
			"session is split evenly among\nthe services that its verdict names. Days are those of this host's time " +
			"zone; the budget of a day is one of UTC.\n\nThe records answer: run it on the host that has them.",
		Example: "  claudeops costs\n  claudeops costs --from 2026-11-01 --to 2026-11-30 -o json",
		Args:    console.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.costs(cmd.Context(), from, to) },
	}
	cmd.Flags().StringVar(&from, "from", "", "first day, such as 2026-11-01 (default: 29 days before the last one)")
	cmd.Flags().StringVar(&to, "to", "", "last day (default: today)")
	return cmd
}

func (a *app) costs(ctx context.Context, from, to string) error {
	filter, err := a.Operations.Costs.Days(from, to)
	if err != nil {
		return err
	}
	report, err := a.Operations.Costs.Report(ctx, filter)
	return console.PrintResult(a.Console, report, err, writeCosts)
}

func writeCosts(w io.Writer, report operations.CostReport) {
	if report.Total.Sessions == 0 {
		_, _ = fmt.Fprintf(w, "%s: no session has ended.\n", report.Period())
		return
	}
	_, _ = fmt.Fprintf(w, "%s: %s in %s\n", report.Period(), costText(report.Total),
		plaintext.Count(report.Total.Sessions, "session"))
	estimated := report.Total.EstimatedUSD > 0
	if look := report.HealthyLook; look.Sessions > 0 {
		average := plaintext.Cost(look.AverageUSD, estimated)
		_, _ = fmt.Fprintf(w, "A look that finds nothing wrong: %s (average of %d)\n", average, look.Sessions)
	}
	month := "known after a day"
	if report.MonthUSD > 0 {
		month = plaintext.Cost(report.MonthUSD, estimated)
	}
	_, _ = fmt.Fprintf(w, "A month at this rate: %s\n", month)
	rows := [][]string{}
	add := func(title, name string, cost operations.Cost) {
		rows = append(rows, []string{
			title, console.Printable(cmp.Or(name, "-"), 60), fmt.Sprint(cost.Sessions),
			costText(cost),
		})
	}
	for _, tier := range report.Tiers {
		add("tier", fmt.Sprint(int(tier.Tier)), tier.Cost)
	}
	for _, list := range []struct {
		title string
		costs []operations.NamedCost
	}{{"model", report.Models}, {"trigger", report.Triggers}, {"service", report.Services}} {
		for _, cost := range list.costs {
			add(list.title, cost.Name, cost.Cost)
		}
	}
	for _, day := range slices.Backward(report.Days) {
		if day.Sessions > 0 || day.USD > 0 {
			add("day", day.Day, day.Cost)
		}
	}
	_, _ = fmt.Fprintln(w)
	console.Table(w, append([][]string{{"BY", "", "SESSIONS", "COST"}}, rows...))
}

// costText formats a cost, and says what of it is estimated or unknown.
func costText(cost operations.Cost) string {
	text := plaintext.Dollars(cost.USD)
	if cost.EstimatedUSD > 0 {
		text += fmt.Sprintf(" (%s estimated)", plaintext.Dollars(cost.EstimatedUSD))
	}
	if cost.UnknownUSD > 0 {
		text += fmt.Sprintf(" and at most %s more", plaintext.Dollars(cost.UnknownUSD))
	}
	return text
}
