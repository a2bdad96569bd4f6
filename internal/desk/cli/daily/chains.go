package daily

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

func (a *app) chainsCommand() *cobra.Command {
	var f operations.ChainFilter
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "chains",
		Short: "List chains, or move them to another version",
		Long: "Chains lists those that run, the one that started last first, and then those that have ended, the one " +
			"that ended\nlast first. One that waits for a person is marked; `claudeops gate` says why it does.",
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listChains(cmd.Context(), f, since) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.Running, "running", false, "only chains that have not ended")
	flags.StringVar(&f.Outcome, "outcome", "", "only chains that ended so, such as needs_human")
	flags.StringVarP(&f.Service, "service", "s", "", "only chains about this service")
	flags.StringVar(&f.Trigger, "trigger", "", "only chains with this trigger")
	flags.Var(console.TierFlag{Tier: &f.Tier, Allowed: escalation.Tiers()}, "tier",
		"only chains that are, or ended, at this tier")
	flags.DurationVar(&since, "since", 0, "only chains started in this time, such as 24h")
	flags.BoolVar(&f.Waits, "waits", false,
		"only running chains that wait: for a person, a cooldown, a service, a budget or a worker")
	flags.BoolVar(&f.Retries, "retries", false, "only running chains at a further attempt, or without a free worker")
	flags.IntVar(&f.Limit, "limit", 20, "at most this many")
	cmd.AddCommand(a.moveCommand())
	return cmd
}

func (a *app) listChains(ctx context.Context, f operations.ChainFilter, since time.Duration) error {
	if since > 0 {
		f.Since = a.Clock().Add(-since)
	}
	page, err := a.Operations.Chains.List(ctx, f)
	return console.PrintResult(a.Console, page.Chains, err, writeChains)
}

func writeChains(w io.Writer, rows []operations.Row) {
	if len(rows) == 0 {
		_, _ = fmt.Fprintln(w, "No chains.")
		return
	}
	lines := [][]string{{"CHAIN", "STATUS", "OUTCOME", "TIER", "COST", "STARTED", "SERVICES"}}
	for _, row := range rows {
		subject := strings.Join(row.Services, ", ")
		switch {
		case row.Plan != "":
			subject = "plan " + row.Plan
		case row.Trigger == string(escalation.TriggerPlan):
			subject = "(a plan)"
		}
		lines = append(lines, []string{
			row.ID, escalation.InWords(row.State()), escalation.InWords(row.Outcome), fmt.Sprint(row.Tier),
			row.CostText(),
			localTime(row.StartedAt), console.Printable(subject, 60),
		})
	}
	console.Table(w, lines)
}
