package claude

import "time"

// Progress is a look at a running invocation.
type Progress struct {
	// PID is the number, on this host, of the process that all of the invocation's come of.
	PID int
	// SessionID is the conversation's id as reported; empty until it is.
	SessionID string
	Phase     Phase
	// Turns counts the main thread's messages so far.
	Turns int
	// Tokens and CostUSD are what was seen so far, subagents included in the cost; the cost is an estimate.
	Tokens  Tokens
	CostUSD float64
	// Recent are the latest tool calls, oldest first, at most RecentCalls. Each report gets its own copy.
	Recent []ToolActivity
	// InFlight are all tool calls that are running, also in the background, in the order of their
	// start. Their inputs are not to be changed.
	InFlight []ToolCall
	// At is the time of the output that caused this report.
	At time.Time
}

// RecentCalls is how many tool calls a Progress holds.
const RecentCalls = 8

// Phase is what the invocation is doing.
type Phase string

// The phases.
const (
	PhaseStarting Phase = "starting" // nothing was heard yet
	PhaseThinking Phase = "thinking" // the model is at work
	PhaseTool     Phase = "tool"     // a tool is running
	PhaseRetrying Phase = "retrying" // the API failed, the CLI tries again
	PhaseEnding   Phase = "ending"   // a result is in
)

// ToolActivity is one tool call as far as it has come.
type ToolActivity struct {
	// Sequence numbers the calls of this invocation from 1.
	Sequence int
	Tool     string
	// Preview is the call's input on one short line, secrets masked.
	Preview string
	Status  ToolStatus
}

// ToolStatus says how far a tool call has come.
type ToolStatus string

// The statuses of a tool call.
const (
	ToolRunning ToolStatus = "running"
	ToolDone    ToolStatus = "done"
	ToolFailed  ToolStatus = "failed" // it was refused, or it reported an error
)
