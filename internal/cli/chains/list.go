package chains

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cli/chainclient"
	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/program"
	"github.com/claudeops/claudeops/workflows"
)

// listFilter selects the chains that match all its fields. An empty field matches every chain.
type listFilter struct {
	running bool
	outcome string
	service string
	trigger string
	tier    escalation.Tier
	since   time.Duration
	limit   int
}

func (a *app) listCommand() *cobra.Command {
	var f listFilter
	cmd := &cobra.Command{
		Use:   "chains",
		Short: "List chains, or move them to another version",
		Long: "Chains lists those that run, the one that started last first, and then those that have ended, the one that ended\n" +
			"last first. One that waits for a person is marked; `starter gate` says why it does.",
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.running, "running", false, "only chains that have not ended")
	flags.StringVar(&f.outcome, "outcome", "", "only chains that ended so, such as needs_human")
	flags.StringVarP(&f.service, "service", "s", "", "only chains about this service")
	flags.StringVar(&f.trigger, "trigger", "", "only chains with this trigger")
	flags.Var(console.TierFlag{Tier: &f.tier, Allowed: escalation.Tiers()}, "tier", "only chains that are, or ended, at this tier")
	flags.DurationVar(&f.since, "since", 0, "only chains started in this time, such as 24h")
	flags.IntVar(&f.limit, "limit", 20, "at most this many")
	cmd.AddCommand(a.moveCommand())
	return cmd
}

func (a *app) list(ctx context.Context, f listFilter) error {
	if err := f.check(); err != nil {
		return program.Misuse(err)
	}
	c, cfg, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if f.service != "" && cfg.Encryption.Keys != nil {
		return program.Misuse(errServiceHidden)
	}
	f.service = cfg.Services.Catalog.Canonical(f.service)
	rows, err := chainclient.List(ctx, c, f.query(time.Now()), f.limit)
	if err != nil {
		return err
	}
	return a.Print(rows, func(w io.Writer) { writeChains(w, rows) })
}

// errServiceHidden is the error for --service if chains do not publish the names of services.
var errServiceHidden = errors.New("--service finds nothing while CLAUDEOPS_ENCRYPTION_KEYS_FILE is set: " +
	"Temporal does not learn the services of chains; look in the records with: starter incidents --service NAME")

// check returns an error if no chain can match the filter.
func (f listFilter) check() error {
	if f.limit < 1 {
		return fmt.Errorf("--limit %d is less than one chain", f.limit)
	}
	if f.outcome != "" && !slices.Contains(escalation.Outcomes(), escalation.Outcome(f.outcome)) {
		return fmt.Errorf("--outcome is %q; it must be %s", f.outcome, console.OrList(outcomeNames()))
	}
	return nil
}

// query returns the filter in Temporal's list syntax.
func (f listFilter) query(now time.Time) string {
	terms := []string{"WorkflowType = " + chainclient.Quote(workflows.ChainWorkflow)}
	add := func(key, value string) {
		if value != "" {
			terms = append(terms, key+" = "+chainclient.Quote(value))
		}
	}
	add(workflows.OutcomeAttribute.GetName(), f.outcome)
	add(workflows.ServicesAttribute.GetName(), f.service)
	add(workflows.TriggerAttribute.GetName(), f.trigger)
	if f.tier != 0 {
		terms = append(terms, fmt.Sprintf("%s = %d", workflows.TierAttribute.GetName(), int(f.tier)))
	}
	if f.running {
		add("ExecutionStatus", "Running")
	}
	if f.since > 0 {
		terms = append(terms, "StartTime >= "+chainclient.Quote(now.Add(-f.since).UTC().Format(time.RFC3339)))
	}
	return strings.Join(terms, " AND ")
}

func outcomeNames() []string {
	var names []string
	for _, outcome := range escalation.Outcomes() {
		names = append(names, string(outcome))
	}
	return names
}

func writeChains(w io.Writer, rows []chainclient.Row) {
	if len(rows) == 0 {
		_, _ = fmt.Fprintln(w, "No chains.")
		return
	}
	lines := [][]string{{"CHAIN", "STATUS", "OUTCOME", "TIER", "COST", "STARTED", "SERVICES"}}
	for _, row := range rows {
		lines = append(lines, []string{
			row.ID, row.State(), row.Outcome, fmt.Sprint(row.Tier), console.Dollars(row.CostUSD),
			row.StartedAt.Local().Format(time.DateTime), console.Printable(strings.Join(row.Services, ", "), 60),
		})
	}
	console.Table(w, lines)
}
