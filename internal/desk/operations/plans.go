package operations

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/workflows"
)

// Plans starts workflows that review a plan or carry it out. Chains shows, follows and cancels them.
type Plans struct{ *backend }

// PlanStart describes a workflow to start.
type PlanStart struct {
	Task escalation.PlanTask
	// ID is the workflow ID. If it is empty, the ID is derived from the task, the repository and the file, so that no
	// plan is worked on twice at the same time.
	ID    string
	Input workflows.PlanInput
}

// Check returns an error of KindInvalid if the workflow would refuse the input.
func (s PlanStart) Check() error {
	switch {
	case s.Task != escalation.PlanReviewed && s.Task != escalation.PlanRun:
		return invalidField("task", "is %q; it must be %s or %s", line(string(s.Task), 60), escalation.PlanReviewed,
			escalation.PlanRun)
	case s.Task == escalation.PlanReviewed && len(s.Input.Phases) > 0:
		return Invalid(errors.New("a review is of the whole plan: phases are for carrying it out"))
	case s.ID != "":
		if err := CheckChainID(s.ID); err != nil {
			return err
		}
	}
	return Invalid(s.Input.Validate())
}

// workflowType returns the name of the workflow for the task.
func (s PlanStart) workflowType() string {
	if s.Task == escalation.PlanReviewed {
		return workflows.PlanReviewWorkflow
	}
	return workflows.PhaseExecutionWorkflow
}

// maxPlanName limits the part of a default ID that names the file, in bytes.
const maxPlanName = 60

// workflowID returns the chosen ID, or the default one. Workers accept a repository by its path or by the last element,
// so only the last element counts.
func (s PlanStart) workflowID() string {
	if s.ID != "" {
		return s.ID
	}
	repository := ""
	if s.Input.Repository != "" {
		repository = path.Base(s.Input.Repository)
	}
	file := path.Base(s.Input.File)
	name := plainName(strings.TrimSuffix(file, path.Ext(file)))
	return fmt.Sprintf("plan-%s-%s-%s", s.Task, name, strings.ToLower(digest(repository, s.Input.File)[:8]))
}

// plainName returns a text for an ID: characters that people would have to quote become hyphens.
func plainName(text string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '_':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, text)
	return strings.Trim(plain[:min(len(plain), maxPlanName)], "-")
}

// PlanStarted names a workflow that was started.
type PlanStarted struct {
	Started

	// Plan has the phases that the workflow has found; nil if no worker has read the plan yet.
	Plan *escalation.PlanState `json:"plan,omitempty"`
	// Warning says what to know before the work begins; empty if nothing.
	Warning string `json:"warning,omitempty"`
}

// Start starts a workflow, and waits a moment for the phases that it finds. The error is KindInvalid if the ID, the
// input or the plan is wrong, and KindConflict if a workflow with this ID runs already.
func (p Plans) Start(ctx context.Context, s PlanStart) (PlanStarted, error) {
	if err := s.Check(); err != nil {
		return PlanStarted{}, err
	}
	connection, cfg, err := p.connect(ctx)
	if err != nil {
		return PlanStarted{}, err
	}
	id := s.workflowID()
	run, err := connection.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: cfg.Worker.TaskQueue, WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary: line(fmt.Sprintf("%s of %s", s.Task, s.Input.File), 200),
		Memo:          map[string]any{planMemo: s.Input.File},
	}, s.workflowType(), s.Input)
	if _, runs := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); runs {
		return PlanStarted{}, withKind(KindConflict, s.alreadyRuns(id))
	}
	if err != nil {
		return PlanStarted{}, fmt.Errorf("start %s: %w", id, err)
	}
	started := PlanStarted{Started: Started{run.GetID(), run.GetRunID()}}
	if started.Plan, err = awaitPlan(ctx, connection, run); started.Plan != nil {
		started.Warning = started.Plan.Warning()
	}
	return started, err
}

// planPatience limits how long a start waits for the phases of a plan, and planPause is the time between two looks.
const planPatience, planPause = 5 * time.Second, 100 * time.Millisecond

// awaitPlan returns what a workflow has found in its plan; nil if no worker answers in time. If the workflow has
// refused the plan, the error says why.
func awaitPlan(ctx context.Context, c client.Client, run client.WorkflowRun) (*escalation.PlanState, error) {
	ctx, cancel := context.WithTimeout(ctx, planPatience)
	defer cancel()
	for ctx.Err() == nil {
		chain, err := Query(ctx, c, run.GetID(), run.GetRunID())
		if err == nil && chain.Plan != nil {
			return chain.Plan, nil
		}
		described, err := c.DescribeWorkflowExecution(ctx, run.GetID(), run.GetRunID())
		if err == nil && described.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_FAILED {
			return nil, Invalid(RootCause(run.Get(ctx, nil)))
		}
		select {
		case <-ctx.Done():
		case <-time.After(planPause):
		}
	}
	return nil, nil
}

// planMemo is the memo of a workflow that holds the path of its plan. Lists of workflows have memos, and no input.
const planMemo = "plan"

// alreadyRuns returns the error for a workflow whose ID is taken.
func (s PlanStart) alreadyRuns(id string) error {
	if s.ID != "" {
		return fmt.Errorf("chain %s runs already: choose another ID", id)
	}
	doing := "carried out"
	if s.Task == escalation.PlanReviewed {
		doing = "reviewed"
	}
	return fmt.Errorf("the plan %s is being %s already, by %s", line(s.Input.File, maxError), doing, id)
}

// errPlanTier is the error for a request for a higher tier from a workflow that works on a plan.
var errPlanTier = Invalid(errors.New("it works on a plan, whose author and reviewer have no higher tier"))

// isPlan reports whether a workflow type is one that works on a plan.
func isPlan(workflowType string) bool {
	return workflowType == workflows.PlanReviewWorkflow || workflowType == workflows.PhaseExecutionWorkflow
}

// PlanTitle names a plan and its file.
func PlanTitle(plan *escalation.PlanState) string {
	if plan.Title == "" {
		return plan.File
	}
	return fmt.Sprintf("%s (%s)", plan.Title, plan.File)
}

// PhaseName names a phase of a plan.
func PhaseName(phase escalation.PlanPhase) string { return phase.Name() }

// The progress of a phase that does not run although its status is running.
const (
	PhaseAtGate     = "waits for a person"
	PhaseUnfinished = "not finished" // the work on the plan has ended
)

// PhaseProgress describes how far a phase is, with the state of its loop if it is the current one.
func PhaseProgress(plan *escalation.PlanState, phase escalation.PlanPhase) string {
	current := plan.Current()
	if current == nil || current.Number != phase.Number || phase.Status != escalation.PhaseRunning {
		return string(phase.Status)
	}
	switch plan.State {
	case "":
		return PhaseUnfinished
	case "gate":
		return PhaseAtGate
	}
	return string(phase.Status) + " (" + strings.ReplaceAll(plan.State, "_", " ") + ")"
}

// PhaseFixes says how many of a phase's findings were fixed, and what the reviews cost for each; empty if there was
// none.
func PhaseFixes(phase escalation.PlanPhase) (fixed, cost string) {
	if phase.Found == 0 {
		return "", ""
	}
	fixed = fmt.Sprintf("%d of %d", phase.Fixed, phase.Found)
	if phase.Fixed > 0 {
		cost = plaintext.Cost(phase.CostPerFixUSD, phase.ReviewCostEstimated)
	}
	return fixed, cost
}

// ShortCommit returns the beginning of a commit's ID, as git shows it.
func ShortCommit(commit string) string { return commit[:min(len(commit), 10)] }
