package api

import (
	"context"
	"net/http"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

func (a *API) registerPlans(r routes) {
	add(r, route{
		role: access.Operate, pattern: "POST /plans", id: "startPlan", tag: chainsTag,
		summary: "Have a plan reviewed, or carried out; the result is a chain", status: http.StatusCreated, maxBody: maxStartBody,
	}, a.startPlan)
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

func (a *API) startPlan(ctx context.Context, in *planStart) (*result[operations.PlanStarted], error) {
	start := operations.PlanStart{Task: in.Body.Task, ID: in.Body.ID, Input: workflows.PlanInput{
		File: in.Body.File, Repository: in.Body.Repository, Phases: in.Body.Phases, Prompt: in.Body.Prompt, BudgetUSD: in.Body.BudgetUSD,
		Actor: personOf(ctx), Verified: true,
	}}
	err := start.Check() // before the attempt is counted
	if err == nil {
		err = access.MayStart(ctx)
	}
	if err != nil {
		return nil, err
	}
	return resultOf(a.operations.Plans.Start(ctx, start))
}
