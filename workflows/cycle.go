package workflows

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
)

const (
	// CycleWorkflow is the workflow type of Cycle.
	CycleWorkflow = "Cycle"
	// ErrorTypeChainFailed is the type of the error with which a cycle ends whose chain failed.
	ErrorTypeChainFailed = "ChainFailed"

	// scheduleActor starts the chains of schedules.
	scheduleActor = "schedule"

	// cyclePrefix and chainPrefix begin the workflow IDs of a schedule's cycles and chains.
	cyclePrefix = "cycle-"
	chainPrefix = "chain-"
)

// CycleWorkflowID is the ID under which a schedule starts its cycles. Temporal appends the time.
func CycleWorkflowID(scheduleID string) string { return cyclePrefix + scheduleID }

// CycleResult is what a cycle came to. The next cycle of the schedule reads it.
type CycleResult struct {
	ChainID string `json:"chain_id"`
	// Outcome is empty if the chain goes on.
	Outcome escalation.Outcome `json:"outcome,omitempty"`
	CostUSD float64            `json:"cost_usd,omitempty"`
	// Waiting says that the chain goes on by itself, because it waits for long.
	Waiting bool `json:"waiting,omitempty"`
	// Omitted is what the schedule had left out when the cycle began.
	Omitted activities.OmittedCycles `json:"omitted"`
}

// cycleRun is one cycle while it runs.
type cycleRun struct {
	input  ChainInput
	result CycleResult
	// told is the notification of what was left out since counted; nil if nothing was.
	told    workflow.Future
	counted activities.OmittedCycles
}

// Cycle runs one chain for a schedule: it ends when the chain has ended, or when the chain
// says that it waits for long, so that later cycles are not held up. It fails if the chain
// failed, and with that can pause its schedule. It is cancelled together with its chain.
func Cycle(ctx workflow.Context, input ChainInput) (CycleResult, error) {
	cycle, err := setUpCycle(ctx, input)
	if err != nil {
		return CycleResult{}, err
	}
	return cycle.run(ctx)
}

// setUpCycle checks the input and names the chain.
func setUpCycle(ctx workflow.Context, input ChainInput) (*cycleRun, error) {
	err := input.Validate()
	if err == nil && input.ResumeFrom != nil {
		err = errors.New("a cycle has a conversation of its own: resume_from is not for schedules")
	}
	if err == nil && input.Carried != nil {
		err = errCarried
	}
	if err != nil {
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), ErrorTypeInput, nil)
	}
	input.Trigger, input.Actor = escalation.TriggerScheduled, cmp.Or(input.Actor, scheduleActor)
	own := workflow.GetInfo(ctx).WorkflowExecution.ID
	return &cycleRun{input: input, result: CycleResult{ChainID: chainPrefix + strings.TrimPrefix(own, cyclePrefix)}}, nil
}

// run is the story of a cycle.
func (c *cycleRun) run(ctx workflow.Context) (CycleResult, error) {
	c.reportOmitted(ctx)
	chain := workflow.ExecuteChildWorkflow(withCycleChain(ctx, c.result.ChainID), ChainWorkflow, c.input)
	var failure error
	workflow.NewSelector(ctx).
		AddFuture(chain, func(ended workflow.Future) { failure = c.conclude(ctx, ended) }).
		AddReceive(workflow.GetSignalChannel(ctx, WaitingSignal), func(waiting workflow.ReceiveChannel, _ bool) {
			waiting.Receive(ctx, nil)
			c.result.Waiting = true
		}).
		Select(ctx)
	if c.told != nil && (!c.told.IsReady() || c.told.Get(ctx, nil) != nil) {
		c.result.Omitted = c.counted // the cycle does not wait for it; the next one tells it again
	}
	return c.result, failure
}

// withCycleChain is for the chain of a cycle: it outlives the cycle when that need not wait for
// it, and is cancelled with it otherwise.
func withCycleChain(ctx workflow.Context, id string) workflow.Context {
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:          id,
		ParentClosePolicy:   enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WaitForCancellation: true,
		StaticSummary:       "scheduled chain",
	})
}

// conclude takes over what the chain came to.
func (c *cycleRun) conclude(ctx workflow.Context, ended workflow.Future) error {
	var chain ChainResult
	if err := ended.Get(ctx, &chain); err != nil {
		if temporal.IsCanceledError(err) {
			return err
		}
		return chainFailed(c.result.ChainID, rootMessage(err))
	}
	c.result.Outcome, c.result.CostUSD = chain.Outcome, chain.CostUSD
	if chain.Outcome == escalation.OutcomeFailed {
		return chainFailed(c.result.ChainID, chain.Reason)
	}
	return nil
}

func chainFailed(id, why string) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf("chain %s failed: %s", id, why), ErrorTypeChainFailed, nil)
}

// scheduleAttribute is given by Temporal to what a schedule starts: the schedule's ID.
var scheduleAttribute = temporal.NewSearchAttributeKeyKeyword("TemporalScheduledById")

// reportOmitted notifies people of cycles that did not take place since the last one that
// ended well. A schedule that cannot be asked keeps no cycle from running.
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
	err := workflow.ExecuteActivity(withSchedule(ctx, "ask the schedule what it left out"), schedules.Omitted,
		activities.OmittedInput{ScheduleID: schedule}).Get(ctx, &c.result.Omitted)
	if err != nil {
		workflow.GetLogger(ctx).Warn("the schedule cannot be asked what it left out", "schedule", schedule, "error", err)
		return
	}
	c.counted = last.Omitted
	if omitted := c.result.Omitted.Since(c.counted); omitted.Total() > 0 {
		c.notifyOmitted(ctx, schedule, omitted)
	}
}

// notifyOmitted tells people while the chain runs.
func (c *cycleRun) notifyOmitted(ctx workflow.Context, schedule string, omitted activities.OmittedCycles) {
	policy, err := loadPolicy(ctx)
	if err != nil || !policy.Notify {
		return
	}
	own := workflow.GetInfo(ctx).WorkflowExecution.ID
	c.told = sendNotification(ctx, escalation.Notification{
		// A cycle that fails leaves no result, so the next one counts the same again, and its key is the same.
		Key:     fmt.Sprintf("schedule/%s/%d/%d", schedule, c.result.Omitted.Overlapped, c.result.Omitted.Late),
		Kind:    escalation.NotifyCycleMissed,
		ChainID: own,
		Title:   titleOf(escalation.NotifyCycleMissed, []string{schedule}),
		Text:    plain(omitted.String()) + "\nLook at it with: starter schedule describe " + schedule,
	})
}
