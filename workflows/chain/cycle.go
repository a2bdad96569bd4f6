package chain

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows/parts"
)

const (
	// CycleWorkflow is the workflow type of Cycle.
	CycleWorkflow = "Cycle"
	// ErrorTypeChainFailed is the error type of a cycle whose chain failed.
	ErrorTypeChainFailed = "ChainFailed"

	// scheduleActor is the actor of a scheduled chain if the input names no actor.
	scheduleActor = "schedule"

	// cyclePrefix begins the workflow IDs of a schedule's cycles. chainPrefix begins the workflow IDs of their chains.
	cyclePrefix = "cycle-"
	chainPrefix = "chain-"
)

// CycleWorkflowID returns the workflow ID that a schedule gives to its cycles. Temporal appends the start time to the
// ID.
func CycleWorkflowID(scheduleID string) string { return cyclePrefix + scheduleID }

// OfCycle returns the workflow ID of the chain that the cycle with the given workflow ID starts.
func OfCycle(cycleID string) string { return chainPrefix + strings.TrimPrefix(cycleID, cyclePrefix) }

// CycleResult is the result of a cycle. The next cycle of the schedule reads it.
type CycleResult struct {
	ChainID string `json:"chain_id"`
	// Outcome is empty if the chain still runs.
	Outcome escalation.Outcome `json:"outcome,omitempty"`
	CostUSD float64            `json:"cost_usd,omitempty"`
	// Waiting reports that the chain waits for a long time. The cycle has ended, and the chain continues.
	Waiting bool `json:"waiting,omitempty"`
	// Omitted holds the number of cycles that the schedule had omitted when this cycle began.
	Omitted activities.OmittedCycles `json:"omitted"`
}

// cycleRun is the state of a running cycle.
type cycleRun struct {
	input  Input
	result CycleResult
	// told is the result of the notification about omitted cycles; nil if no notification was started. counted is the
	// number of omitted cycles in the result of the last successful cycle.
	told    workflow.Future
	counted activities.OmittedCycles
}

// Cycle runs one chain for a schedule. It ends when the chain ends. If the chain signals a long wait, Cycle ends at
// once, so that later cycles are not skipped. If the chain failed, the cycle fails, which can pause the schedule.
// Cancelling the cycle cancels the chain.
func Cycle(ctx workflow.Context, input Input) (CycleResult, error) {
	cycle, err := setUpCycle(ctx, input)
	if err != nil {
		return CycleResult{}, err
	}
	return cycle.run(ctx)
}

// setUpCycle checks the input and chooses the ID of the chain.
func setUpCycle(ctx workflow.Context, input Input) (*cycleRun, error) {
	err := input.Validate()
	if err == nil && input.ResumeFrom != nil {
		err = errors.New("a cycle has a conversation of its own: resume_from is not for schedules")
	}
	if err == nil && input.Carried != nil {
		err = parts.ErrCarried
	}
	if err != nil {
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), parts.ErrorTypeInput, nil)
	}
	input.Trigger, input.Actor = escalation.TriggerScheduled, cmp.Or(input.Actor, scheduleActor)
	own := workflow.GetInfo(ctx).WorkflowExecution.ID
	return &cycleRun{input: input, result: CycleResult{ChainID: OfCycle(own)}}, nil
}

// run runs the chain and returns the result of the cycle.
func (c *cycleRun) run(ctx workflow.Context) (CycleResult, error) {
	c.reportOmitted(ctx)
	chain := workflow.ExecuteChildWorkflow(withCycleChain(ctx, c.result.ChainID), Workflow, c.input)
	var failure error
	workflow.NewSelector(ctx).
		AddFuture(chain, func(ended workflow.Future) { failure = c.conclude(ctx, ended) }).
		AddReceive(workflow.GetSignalChannel(ctx, parts.WaitingSignal), func(waiting workflow.ReceiveChannel, _ bool) {
			waiting.Receive(ctx, nil)
			c.result.Waiting = true
		}).
		Select(ctx)
	if c.told != nil && (!c.told.IsReady() || c.told.Get(ctx, nil) != nil) {
		c.result.Omitted = c.counted // nobody knows of the new omissions yet, so the next cycle reports them again
	}
	return c.result, failure
}

// withCycleChain returns a context with the options for the chain of a cycle. If the cycle ends before the chain, the
// chain continues. If the cycle is cancelled while it waits for the chain, the chain is cancelled, too.
func withCycleChain(ctx workflow.Context, id string) workflow.Context {
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:          id,
		ParentClosePolicy:   enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WaitForCancellation: true,
		StaticSummary:       "scheduled chain",
	})
}

// conclude copies the chain's outcome and cost into the result. It returns an error if the chain failed or was
// cancelled.
func (c *cycleRun) conclude(ctx workflow.Context, ended workflow.Future) error {
	var chain Result
	if err := ended.Get(ctx, &chain); err != nil {
		if temporal.IsCanceledError(err) {
			return err
		}
		return chainFailed(c.result.ChainID, parts.RootMessage(err))
	}
	c.result.Outcome, c.result.CostUSD = chain.Outcome, chain.CostUSD
	if chain.Outcome == escalation.OutcomeFailed {
		return chainFailed(c.result.ChainID, chain.Reason)
	}
	return nil
}

func chainFailed(id, why string) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf("chain %s failed: %s", id, why), ErrorTypeChainFailed,
		nil)
}

// scheduleAttribute is the search attribute with the ID of the schedule. Temporal sets it on each workflow that a
// schedule starts.
var scheduleAttribute = temporal.NewSearchAttributeKeyKeyword("TemporalScheduledById")

// reportOmitted notifies people of the cycles that the schedule has omitted since the last successful cycle. If the
// schedule cannot be read, reportOmitted logs a warning, and the cycle continues.
func (c *cycleRun) reportOmitted(ctx workflow.Context) {
	schedule, scheduled := workflow.GetTypedSearchAttributes(ctx).GetKeyword(scheduleAttribute)
	if !scheduled {
		return // somebody started the cycle by hand
	}
	var last CycleResult
	if workflow.HasLastCompletionResult(ctx) {
		if err := workflow.GetLastCompletionResult(ctx, &last); err != nil {
			workflow.GetLogger(ctx).Warn("the last cycle's result cannot be read", "error", err)
		}
	}
	c.result.Omitted = last.Omitted
	var schedules *activities.Schedules
	err := workflow.ExecuteActivity(parts.WithSchedule(ctx, "ask the schedule what it left out"), schedules.Omitted,
		activities.OmittedInput{ScheduleID: schedule}).Get(ctx, &c.result.Omitted)
	if err != nil {
		workflow.GetLogger(ctx).Warn("the schedule cannot be asked what it left out", "schedule", schedule, "error",
			err)
		return
	}
	c.counted = last.Omitted
	if omitted := c.result.Omitted.Since(c.counted); omitted.Total() > 0 {
		c.notifyOmitted(ctx, schedule, omitted)
	}
}

// notifyOmitted starts a notification about omitted cycles. The notification is sent while the chain runs.
func (c *cycleRun) notifyOmitted(ctx workflow.Context, schedule string, omitted activities.OmittedCycles) {
	policy, err := parts.LoadPolicy(ctx)
	if err != nil || !policy.Notify {
		return
	}
	own := workflow.GetInfo(ctx).WorkflowExecution.ID
	c.told = parts.SendNotification(ctx, escalation.Notification{
		// A failed cycle leaves no result. So the next cycle counts the same omissions again. Its notification then
		// has the same key, so that people do not get it twice.
		Key:  fmt.Sprintf("schedule/%s/%s", schedule, c.result.Omitted.Key()),
		Kind: escalation.NotifyCycleMissed, Severity: escalation.NotifyCycleMissed.Severity(),
		ChainID: own,
		Title:   parts.TitleOf(escalation.NotifyCycleMissed, []string{schedule}),
		Text:    parts.Plain(omitted.String()),
		Then:    "Look at it with: claudeops schedule describe " + schedule,
	})
}
