package chainclient

import (
	"context"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/workflows"
)

// Row is one chain in a list.
type Row struct {
	ID        string    `json:"id"`
	RunID     string    `json:"run_id"`
	Status    string    `json:"status"`
	Outcome   string    `json:"outcome,omitempty"`
	Gate      string    `json:"gate,omitempty"` // open while the chain waits for a person, closed afterwards
	Tier      int64     `json:"tier,omitempty"`
	Trigger   string    `json:"trigger,omitempty"`
	Services  []string  `json:"services,omitempty"`
	CostUSD   float64   `json:"cost_usd"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}

// Quote returns value as a string literal of Temporal's list filters.
func Quote(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

// RunningQuery returns a list filter for the running chains and cycles that also match filter. If filter is empty, it
// matches all of them.
func RunningQuery(filter string) string {
	query := fmt.Sprintf("WorkflowType IN (%s, %s) AND ExecutionStatus = 'Running'",
		Quote(workflows.ChainWorkflow), Quote(workflows.CycleWorkflow))
	if filter != "" {
		query += " AND (" + filter + ")"
	}
	return query
}

// List returns the chains that match query, which is a list filter of Temporal. It returns no more chains than limit.
func List(ctx context.Context, c console.Connection, query string, limit int) ([]Row, error) {
	rows := []Row{} // an empty list is [] in JSON
	var page []byte
	for {
		listed, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: c.Namespace, Query: query, PageSize: int32(min(limit, 1000)), NextPageToken: page, //nolint:gosec // at most 1000
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

func rowOf(execution *workflowpb.WorkflowExecutionInfo) Row {
	row := Row{
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
			// If the attribute has an unexpected type, target stays empty.
			_ = converter.GetDefaultDataConverter().FromPayload(payload, target)
		}
	}
	return row
}

func statusName(status enumspb.WorkflowExecutionStatus) string {
	return strings.ToLower(status.String())
}

// OpenGate is the value of workflows.GateAttribute while a chain waits for a person.
const OpenGate = "open"

// State describes the state of the chain in one word or a few.
func (r Row) State() string {
	if r.Status == "running" && r.Gate == OpenGate { // a chain that was terminated at its gate still has the attribute
		return "waits for a person"
	}
	return r.Status
}
