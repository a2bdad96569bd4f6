package api

import (
	"context"
	"net/http"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

var startPlan = route[planStart, operations.PlanStarted]{
	role: access.Operate, pattern: "POST /plans", id: "startPlan", tag: chainsTag,
	summary: "Have a plan reviewed, or carried out; the result is a chain", status: http.StatusCreated,
	maxBody: maxStartBody,
}

func (a *API) registerPlans(r routes) {
	add(r, startPlan, func(ctx context.Context, in *planStart) (started operations.PlanStarted, err error) {
		start := operations.PlanStart{Task: in.Body.Task, ID: in.Body.ID, Input: workflows.PlanInput{
			File: in.Body.File, Repository: in.Body.Repository, Phases: in.Body.Phases, Prompt: in.Body.Prompt,
			BudgetUSD: in.Body.BudgetUSD, Actor: personOf(ctx), Verified: true,
		}}
		if err := start.Check(); err != nil { // before the attempt is counted
			return started, err
		}
		if err := access.MayStart(ctx); err != nil {
			return started, err
		}
		return a.operations.Plans.Start(ctx, start)
	})
}

// PlanRequest says what to do with a plan. The fields mean the same as those of workflows.PlanInput.
type PlanRequest struct {
	Task       escalation.PlanTask `json:"task" enum:"review,run" doc:"Review the plan and amend it, or carry out its phases."`
	File       string              `json:"file" doc:"The path of the plan below the working directory. It must be committed."`
	ID         string              `json:"id,omitempty" doc:"The ID of the chain; by default one made of task, repository and file."`
	Repository string              `json:"repository,omitempty" doc:"One of the workers' repositories to work in."`
	Phases     []string            `json:"phases,omitempty" doc:"The numbers of the phases to carry out; by default all that are not done."`
	Prompt     string              `json:"prompt,omitempty" doc:"What to do beside what the plan says, in your words."`
	BudgetUSD  float64             `json:"budget_usd,omitempty" doc:"Lowers the budget of the chain, in US dollars."`
}

// planStart is a request to work on a plan.
type planStart struct {
	Body PlanRequest
}

// Plans does through the API what operations.Plans does.
type Plans struct{ client *Client }

// Start starts the review or the execution of a plan. Its actor is the person to whom the token belongs.
func (p Plans) Start(ctx context.Context, start operations.PlanStart) (started operations.PlanStarted, err error) {
	if err := start.Check(); err != nil {
		return started, err
	}
	return startPlan.call(ctx, p.client, planStart{PlanRequest{
		Task: start.Task, File: start.Input.File, ID: start.ID, Repository: start.Input.Repository,
		Phases: start.Input.Phases, Prompt: start.Input.Prompt, BudgetUSD: start.Input.BudgetUSD,
	}})
}
