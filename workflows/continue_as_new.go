package workflows

import (
	"encoding/json"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// Carried is the state that a chain at a gate passes to its next run. The functions trimmed and shortenGates limit the
// size of the state.
type Carried struct {
	Policy escalation.Policy `json:"policy"`
	// FirstRunID is the run ID with which the chain began, before it first continued as new.
	FirstRunID string `json:"first_run_id,omitempty"`
	// Directory is the agents' working directory; empty for the default one.
	Directory string           `json:"directory,omitempty"`
	State     escalation.Chain `json:"state"`
	// Step is the gate at which the chain waits.
	Step gateStep `json:"step"`
	// Proposed is the change of the chain; nil if it has committed nothing.
	Proposed *proposedChange `json:"proposed,omitempty"`
	// InFlight holds the tool calls that the last session left without a result.
	InFlight []activities.ToolCall `json:"in_flight,omitempty"`
	// Reminded counts the reminders of the open gate that have become due.
	Reminded int  `json:"reminded,omitempty"`
	Detached bool `json:"detached,omitempty"`
	// Request is a person's pending request for a tier; nil if there is none.
	Request *EscalateSignal `json:"request,omitempty"`
	// Told lists the kinds of all notifications that the chain has sent or given up so far.
	Told []escalation.NotificationKind `json:"told,omitempty"`
}

// UnmarshalJSON ignores unknown fields, because a newer worker may have written the state and an older worker may read
// it. Unknown fields elsewhere in an input remain errors.
func (c *Carried) UnmarshalJSON(data []byte) error {
	type plain Carried // has no UnmarshalJSON, which would call itself
	return json.Unmarshal(data, (*plain)(c))
}

// continueAsNew returns the error that makes Temporal start a new run of the chain at the same gate. It loses no
// signal, because the caller has received all signals, and continueAsNew does not block. If another signal arrives at
// this moment, Temporal repeats the workflow task with that signal.
//
// The new run begins in the version of the workers that is current at its start. If the workers have no versions, the
// option InitialVersioningBehavior has no effect.
func (c *chainRun) continueAsNew(ctx workflow.Context, at gateStep) error {
	input := c.input
	input.Carried = &Carried{
		Policy: withWindows(*c.policy, c.sessions), FirstRunID: c.log.firstRun(ctx), Directory: c.sessions.directory,
		State: trimmed(c.log.chain), Step: at, InFlight: c.sessions.inFlight,
		Proposed: c.proposed, Reminded: c.gates.reminded, Detached: c.parent.detached, Request: c.requests.pending, Told: c.people.before,
	}
	info := workflow.GetInfo(ctx)
	workflow.GetLogger(ctx).Info("the chain continues as new", "gate", c.gates.latest().ID,
		"events", info.GetCurrentHistoryLength(), "new_version", info.GetTargetWorkerDeploymentVersionChanged())
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{
		InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade,
	}, ChainWorkflow, input)
}

// chainRun returns the chain in the state in which its previous run ended.
func (c *Carried) chainRun(input ChainInput) *chainRun {
	chain := composeChain(input, c.State)
	*chain.policy = c.Policy
	chain.log.firstRunID, chain.sessions.directory, chain.sessions.inFlight = c.FirstRunID, c.Directory, c.InFlight
	chain.gates.reminded, chain.parent.detached, chain.proposed = c.Reminded, c.Detached, c.Proposed
	chain.requests.pending, chain.people.before = c.Request, c.Told
	if gate := c.State.OpenGate(); gate != nil {
		chain.incidents.news = slices.Clone(gate.News)
	}
	return chain
}
