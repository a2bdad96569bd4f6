package workflows

import (
	"encoding/json"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// CarriedPlan is the state that the work on a plan passes to its next run.
type CarriedPlan struct {
	Policy escalation.Policy `json:"policy"`
	// FirstRunID is the run ID with which the work began, before it first continued as new.
	FirstRunID string `json:"first_run_id,omitempty"`
	// Directory is the working directory; empty for the default one.
	Directory string           `json:"directory,omitempty"`
	State     escalation.Chain `json:"state"`
	Step      planStep         `json:"step"`
	// InFlight holds the tool calls that the author's latest session left without a result.
	InFlight []activities.ToolCall `json:"in_flight,omitempty"`
	// Reminded counts the reminders of the open gate that have become due.
	Reminded int `json:"reminded,omitempty"`
	// WaitingSince is the time at which an author's or a reviewer's session began to wait; zero if none waits.
	WaitingSince time.Time `json:"waiting_since,omitzero"`
	// Told lists the kinds of all notifications that were sent or given up so far.
	Told []escalation.NotificationKind `json:"told,omitempty"`
}

// UnmarshalJSON ignores unknown fields, because a newer worker may have written the state and an older worker may read
// it. Unknown fields elsewhere in an input remain errors.
func (c *CarriedPlan) UnmarshalJSON(data []byte) error {
	type plain CarriedPlan // has no UnmarshalJSON, which would call itself
	return json.Unmarshal(data, (*plain)(c))
}

// isLong reports whether the work should continue as new between two turns, and would lose nothing by doing so.
func (p *planRun) isLong(ctx workflow.Context) bool { return p.gates.mayContinueAsNew(ctx) }

// continueAsNew returns the error that makes Temporal start a new run in the same state. It refuses answers that have arrived
// before a gate is open, and records the end of the latest session.
func (p *planRun) continueAsNew(ctx workflow.Context) error {
	if !p.at.AtGate {
		p.gates.receiveReplies(ctx)
		p.people.settle(ctx)
		if err := p.sessions.flush(ctx); err != nil {
			return err
		}
		if err := p.log.record(ctx, "record events", false); err != nil {
			return err
		}
		if !p.gates.mayContinueAsNew(ctx) { // something has arrived meanwhile
			return nil
		}
	}
	workflowType := PhaseExecutionWorkflow
	if p.task == escalation.PlanReviewed {
		workflowType = PlanReviewWorkflow
	}
	input := p.input
	input.Carried = &CarriedPlan{
		Policy: withWindows(*p.policy, p.sessions), FirstRunID: p.log.firstRun(ctx), Directory: p.sessions.directory,
		State: trimmed(p.log.chain), Step: p.at, InFlight: p.sessions.inFlight, Reminded: p.gates.reminded, Told: p.people.before,
		WaitingSince: p.sessions.waitingSince,
	}
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{
		InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade,
	}, workflowType, input)
}
