package talk

import (
	"encoding/json"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
)

// CarriedConversation is the state that a conversation passes to its next run. It has no messages and no replies, which
// are in the records.
type CarriedConversation struct {
	// FirstRunID is the run ID with which the conversation began, before it first continued as new.
	FirstRunID string `json:"first_run_id,omitempty"`
	// State holds the latest session and the cost.
	State escalation.Chain `json:"state"`
	// Last is the session whose conversation the next turn continues.
	Last *escalation.Session `json:"last,omitempty"`
	// Refused is a conversation that cannot be continued.
	Refused refusedConversation `json:"refused,omitzero"`
	// Waiting lists the turns that wait, Known the latest messages, and Ended the latest turns that have ended.
	Waiting []talkTurn         `json:"waiting,omitempty"`
	Known   []KnownMessage     `json:"known,omitempty"`
	Latest  int                `json:"latest,omitempty"`
	Ended   []ConversationTurn `json:"ended,omitempty"`
}

// UnmarshalJSON ignores unknown fields, because a newer worker may have written the state and an older worker may read
// it. Unknown fields elsewhere in an input remain errors.
func (c *CarriedConversation) UnmarshalJSON(data []byte) error {
	type plain CarriedConversation // has no UnmarshalJSON, which would call itself
	return json.Unmarshal(data, (*plain)(c))
}

// isLong reports whether the conversation should continue as new.
func (c *conversationRun) isLong(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.CronSchedule == "" && (info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() >= c.limit ||
		info.GetCurrentHistorySize() >= maxTalkHistoryBytes || c.sent >= MaxTalkUpdates)
}

// settle reports whether the conversation can continue as new. It waits for a moment if only an update that has just
// completed forbids it. Whatever else is in flight wakes the conversation when it ends.
func (c *conversationRun) settle(ctx workflow.Context) bool {
	if !c.isQuiet(ctx) {
		return false
	}
	settled, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout: settleTime, TimerOptions: workflow.TimerOptions{Summary: "before a new run"},
	}, func() bool { return c.isIdle(ctx) })
	return err == nil && settled
}

// isIdle reports whether the conversation can continue as new. An update that has completed in this workflow task
// counts as in flight, because Temporal could deliver it to the next run as well.
func (c *conversationRun) isIdle(ctx workflow.Context) bool {
	return c.isQuiet(ctx) && workflow.GetInfo(ctx).GetCurrentHistoryLength() > c.handled
}

// isQuiet reports whether nothing is in flight: no session, no update, no signal.
func (c *conversationRun) isQuiet(ctx workflow.Context) bool {
	return c.turns.running == nil && c.arriving == 0 && c.Sessions.Closing == nil && !c.signalled(ctx) &&
		workflow.AllHandlersFinished(ctx)
}

// continueAsNew returns the error that makes Temporal start a new run of the conversation. The caller must not block in
// between.
func (c *conversationRun) continueAsNew(ctx workflow.Context) error {
	input := ConversationInput{About: c.about, Carried: &CarriedConversation{
		FirstRunID: c.Log.FirstRun(ctx), State: withLastSession(c.Log.Chain), Last: c.last, Refused: c.refused,
		Waiting: c.turns.waiting, Known: c.turns.known, Latest: c.turns.latest, Ended: c.turns.ended,
	}}
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{}, ConversationWorkflow,
		input)
}

// withLastSession returns chain with its last session only, and without its events. The field Earlier of the result
// counts what was dropped.
func withLastSession(chain escalation.Chain) escalation.Chain {
	if left := len(chain.Sessions) - 1; left > 0 {
		chain.Earlier.Sessions += left
		chain.Earlier.CostUSD += escalation.TotalCostUSD(chain.Sessions[:left])
		chain.Earlier.CostEstimated = chain.Earlier.CostEstimated || escalation.AnyEstimated(chain.Sessions[:left])
		chain.Earlier.UnknownUSD += escalation.UnknownUSD(chain.Sessions[:left])
		chain.Sessions = chain.Sessions[left:]
	}
	chain.Earlier.Events += len(chain.Events)
	chain.Events = nil
	return chain
}
