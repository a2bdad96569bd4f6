package year

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation/review"
)

// planText is the plan of all repositories.
const planText = "# Ports\n\n## Phase 1: web\n- [ ] set the port\n\n## Phase 2: db\n- [ ] set the port\n"

// ReadPlan implements activities.Plans.
func (*agents) ReadPlan(context.Context, activities.PlanRequest) (activities.PlanResult, error) {
	plan, err := review.ParsePlan(planText)
	return activities.PlanResult{Plan: plan, Change: activities.Change{Base: "b0", Commit: "b0", Patch: "+" + planText, Fork: "b0"}}, err
}

// Inspect implements activities.Plans.
func (a *agents) Inspect(_ context.Context, run activities.AgentRun, _ func(activities.AgentProgress)) (*activities.Change, error) {
	return a.commit(run), nil
}

// Push implements activities.Pusher.
func (*agents) Push(context.Context, activities.PushRequest) (activities.PushResult, error) {
	return activities.PushResult{Remote: "origin"}, nil
}

// commit returns what an author has committed. Some checks fail.
func (a *agents) commit(run activities.AgentRun) *activities.Change {
	plan, err := review.ParsePlan(planText)
	if err != nil {
		panic(err)
	}
	for i := range plan.Phases {
		for j := range plan.Phases[i].Items {
			plan.Phases[i].Items[j].Done = true
		}
	}
	change := &activities.Change{
		Branch: "claudeops/run", Base: run.Authoring.From.Commit, Commit: "c" + run.SessionID, Plan: &plan, Fork: "b0", Pack: []byte(run.SessionID),
		Files: []review.File{{Path: "compose.yaml", Added: 1, Removed: 1}}, Checks: review.QualityPassed,
	}
	if a.world.in(15, run.SessionID, "checks fail") {
		change.Checks, change.CheckOutput = review.QualityFailed, "the port is taken"
	}
	return change
}

// review returns the verdict of a reviewer.
func (a *agents) review(run activities.AgentRun) review.Verdict {
	verdict := review.Verdict{Status: review.Ready, Summary: "as the plan says", Findings: []review.Finding{}}
	if a.world.in(30, run.SessionID, "finds") {
		verdict.Status = review.ReadyWithCorrections
		verdict.Findings = append(verdict.Findings, review.Finding{
			Fingerprint: fmt.Sprint("port-", a.world.draw(3, run.SessionID, "finding")), Priority: review.P1, Action: review.AutoFix,
			File: "compose.yaml", Line: 3, Text: "The port is taken.",
		})
	}
	return verdict
}

// plan has a plan reviewed or carried out.
func (i *installation) plan(ctx context.Context, n int) {
	body := map[string]any{"task": []string{"run", "review"}[i.draw(2, "plan", n)], "file": fmt.Sprintf("docs/plan-%d.md", n)}
	for pause := time.Minute; ctx.Err() == nil; pause *= 2 {
		status, answer := i.ask(ctx, "ada", http.MethodPost, "/api/v1/plans", body)
		if status == http.StatusCreated || status == http.StatusConflict {
			i.agents.count(i.agents.ran, "plans")
			return
		}
		if status < http.StatusInternalServerError {
			i.problem("a plan: %d %s", status, answer)
			return
		}
		time.Sleep(pause)
	}
}
