package claude

import "time"

// Progress is a snapshot of a running invocation.
type Progress struct {
	// PID is the id of the invocation's root process on this host.
	PID int
	// SessionID is the conversation's id as the CLI reported it; empty until the CLI reports it.
	SessionID string
	Phase     Phase
	// Turns is the number of API calls of the main thread so far.
	Turns int
	// Tokens is the sum of the main thread's tokens so far.
	Tokens Tokens
	// CostUSD is an estimate of the cost so far, including subagents.
	CostUSD float64
	// Recent holds the latest tool calls, oldest first, at most RecentCalls. Each report gets its own copy.
	Recent []ToolActivity
	// InFlight holds all running tool calls, including background calls, in the order of their start. The receiver of
	// the report must not change the inputs of the calls.
	InFlight []ToolCall
	// Text is the beginning of the field Invocation.TextField as far as the model has written it, with secrets masked,
	// at most MaxText bytes. If the model writes its structured output again, Text begins anew.
	Text string
	// At is the time of the output that caused this report.
	At time.Time
}

// RecentCalls limits the number of calls in Progress.Recent.
const RecentCalls = 8

// MaxText limits Progress.Text, in bytes.
const MaxText = 16 << 10

// Phase is the phase of an invocation.
type Phase string

// The phases.
const (
	PhaseStarting Phase = "starting" // no event yet
	PhaseThinking Phase = "thinking" // the model is working
	PhaseTool     Phase = "tool"     // a tool is running
	PhaseRetrying Phase = "retrying" // the API failed and the CLI retries
	PhaseEnding   Phase = "ending"   // a result has arrived
)

// ToolActivity is the current state of a tool call.
type ToolActivity struct {
	// Sequence numbers the calls of this invocation from 1.
	Sequence int
	Tool     string
	// Preview is the call's input on one short line, with secrets masked.
	Preview string
	Status  ToolStatus
}

// ToolStatus is the status of a tool call.
type ToolStatus string

// The statuses of a tool call.
const (
	ToolRunning ToolStatus = "running"
	ToolDone    ToolStatus = "done"
	ToolFailed  ToolStatus = "failed" // it was refused, or it reported an error
)
