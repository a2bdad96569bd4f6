package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// chainsFilter selects chains. Empty fields select all.
type chainsFilter struct {
	running bool
	outcome string
	service string
	trigger string
	tier    escalation.Tier
	since   time.Duration
	limit   int
}

// chainRow is one chain in a list.
type chainRow struct {
	ID        string    `json:"id"`
	RunID     string    `json:"run_id"`
	Status    string    `json:"status"`
	Outcome   string    `json:"outcome,omitempty"`
	Gate      string    `json:"gate,omitempty"` // open while the chain waits for a person, closed if it did
	Tier      int64     `json:"tier,omitempty"`
	Trigger   string    `json:"trigger,omitempty"`
	Services  []string  `json:"services,omitempty"`
	CostUSD   float64   `json:"cost_usd"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}

func (a *app) chainsCommand() *cobra.Command {
	var f chainsFilter
	cmd := &cobra.Command{
		Use:   "chains",
		Short: "List chains",
		Long: "Chains lists those that run, the one that started last first, and then those that have ended, the one that ended\n" +
			"last first. One that waits for a person is marked; `starter gate` says why it does.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.chains(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.running, "running", false, "only chains that have not ended")
	flags.StringVar(&f.outcome, "outcome", "", "only chains that ended so, such as needs_human")
	flags.StringVarP(&f.service, "service", "s", "", "only chains about this service")
	flags.StringVar(&f.trigger, "trigger", "", "only chains with this trigger")
	flags.Var(tierFlag{&f.tier, escalation.Tiers()}, "tier", "only chains that are, or ended, at this tier")
	flags.DurationVar(&f.since, "since", 0, "only chains started in this time, such as 24h")
	flags.IntVar(&f.limit, "limit", 20, "at most this many")
	return cmd
}

func (a *app) chains(ctx context.Context, f chainsFilter) error {
	query, err := f.query(time.Now())
	if err != nil {
		return misuse(err)
	}
	c, _, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	rows, err := listChains(ctx, c, query, f.limit)
	if err != nil {
		return err
	}
	return a.print(rows, func(w io.Writer) { writeChains(w, rows) })
}

// query is the filter in Temporal's list syntax.
func (f chainsFilter) query(now time.Time) (string, error) {
	if f.limit < 1 {
		return "", fmt.Errorf("--limit %d is less than one chain", f.limit)
	}
	if f.outcome != "" && !slices.Contains(escalation.Outcomes(), escalation.Outcome(f.outcome)) {
		return "", fmt.Errorf("--outcome is %q; it must be %s", f.outcome, orList(outcomeNames()))
	}
	terms := []string{"WorkflowType = " + quote(workflows.ChainWorkflow)}
	add := func(key, value string) {
		if value != "" {
			terms = append(terms, key+" = "+quote(value))
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
		terms = append(terms, "StartTime >= "+quote(now.Add(-f.since).UTC().Format(time.RFC3339)))
	}
	return strings.Join(terms, " AND "), nil
}

func outcomeNames() []string {
	var names []string
	for _, outcome := range escalation.Outcomes() {
		names = append(names, string(outcome))
	}
	return names
}

// quote makes value a string of Temporal's list syntax.
func quote(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

func listChains(ctx context.Context, c connection, query string, limit int) ([]chainRow, error) {
	rows := []chainRow{} // an empty list is [] in JSON
	var page []byte
	for {
		listed, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: c.namespace, Query: query, PageSize: int32(min(limit, 1000)), NextPageToken: page, //nolint:gosec // at most 1000
		})
		if err != nil {
			return nil, fmt.Errorf("list chains: %w", err)
		}
		for _, execution := range listed.GetExecutions() {
			if len(rows) == limit {
				return rows, nil
			}
			rows = append(rows, rowOf(execution))
		}
		if page = listed.GetNextPageToken(); len(page) == 0 {
			return rows, nil
		}
	}
}

func rowOf(execution *workflowpb.WorkflowExecutionInfo) chainRow {
	row := chainRow{
		ID:        execution.GetExecution().GetWorkflowId(),
		RunID:     execution.GetExecution().GetRunId(),
		Status:    statusName(execution.GetStatus()),
		StartedAt: execution.GetStartTime().AsTime(),
	}
	if closed := execution.GetCloseTime(); closed != nil {
		row.EndedAt = closed.AsTime()
	}
	fields := execution.GetSearchAttributes().GetIndexedFields()
	for name, target := range map[string]any{
		workflows.OutcomeAttribute.GetName():  &row.Outcome,
		workflows.GateAttribute.GetName():     &row.Gate,
		workflows.TierAttribute.GetName():     &row.Tier,
		workflows.TriggerAttribute.GetName():  &row.Trigger,
		workflows.ServicesAttribute.GetName(): &row.Services,
		workflows.CostAttribute.GetName():     &row.CostUSD,
	} {
		if payload, ok := fields[name]; ok {
			// An attribute of another type than ours stays empty in the list.
			_ = converter.GetDefaultDataConverter().FromPayload(payload, target)
		}
	}
	return row
}

func statusName(status enumspb.WorkflowExecutionStatus) string {
	return strings.ToLower(status.String())
}

// openGate is what workflows.GateAttribute holds while a chain waits for a person.
const openGate = "open"

// state is what the chain does, for a person.
func (r chainRow) state() string {
	if r.Status == "running" && r.Gate == openGate { // one that was terminated at its gate keeps the mark
		return "waits for a person"
	}
	return r.Status
}

func writeChains(w io.Writer, rows []chainRow) {
	if len(rows) == 0 {
		_, _ = fmt.Fprintln(w, "No chains.")
		return
	}
	lines := [][]string{{"CHAIN", "STATUS", "OUTCOME", "TIER", "COST", "STARTED", "SERVICES"}}
	for _, row := range rows {
		lines = append(lines, []string{
			row.ID, row.state(), row.Outcome, fmt.Sprint(row.Tier), dollars(row.CostUSD),
			row.StartedAt.Local().Format(time.DateTime), printable(strings.Join(row.Services, ", "), 60),
		})
	}
	table(w, lines)
}
