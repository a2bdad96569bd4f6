package apiclient

import (
	"context"

	"github.com/claudeops/claudeops/internal/desk/operations"
)

// Plans does through the API what operations.Plans does.
type Plans struct{ client *Client }

// Start starts the review or the execution of a plan. Its actor is the person to whom the token belongs.
func (p Plans) Start(ctx context.Context, start operations.PlanStart) (started operations.PlanStarted, err error) {
	if err := start.Check(); err != nil {
		return started, err
	}
	body := map[string]any{
		"task": start.Task, "id": start.ID, "file": start.Input.File, "repository": start.Input.Repository, "prompt": start.Input.Prompt,
		"budget_usd": start.Input.BudgetUSD,
	}
	if len(start.Input.Phases) > 0 {
		body["phases"] = start.Input.Phases
	}
	err = p.client.post(ctx, at("plans"), body, &started)
	return started, err
}
