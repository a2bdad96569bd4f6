package activities

import (
	"context"
	"encoding/json"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Agent runs the claude CLI.
type Agent interface {
	// Run runs one invocation to its end and calls observe, on one goroutine, whenever
	// something happens. When ctx ends it stops the whole process tree before it
	// returns, with the status escalation.SessionStopped. It returns an error if and only if the same invocation may go better
	// later; what is known, the cost among it, is in the report even then.
	Run(ctx context.Context, run AgentRun, observe func(AgentProgress)) (AgentReport, error)
	// HasConversation reports whether there is a conversation of agents in directory that can be
	// resumed, on this host or in an archive. An error means that this cannot be told now.
	HasConversation(ctx context.Context, directory, sessionID string) (bool, error)
}

// AgentRun is one invocation of the claude CLI for a tier.
type AgentRun struct {
	ChainID string
	Tier    escalation.Tier
	// DryRun says that the chain only looks.
	DryRun bool
	// Policy is what the invocation may do and spend.
	Policy escalation.TierPolicy
	// SessionID is the id of the conversation to write.
	SessionID string
	// Directory is where the agent works; empty for the usual place.
	Directory string
	// Resume is the conversation to start from: empty for none, SessionID to go on with
	// it, any other to fork it.
	Resume string
	Prompt string
	// Schema is the JSON schema of the output; empty asks for none.
	Schema string
	// Cooldowns are what the agent finds in its chain's directory, in CooldownFile.
	Cooldowns []escalation.ServiceState
	// Limits are how often its calls may repair a service.
	Limits escalation.Cooldowns
	// LeavesHandoff says that the agent is asked to leave HandoffFile in that directory.
	LeavesHandoff bool
}

// after returns the run with what is left of its budget after that spending, and false if nothing is.
func (r AgentRun) after(spent escalation.Report) (AgentRun, bool) {
	if r.Policy.BudgetUSD == 0 {
		return r, true
	}
	r.Policy.BudgetUSD -= spent.CostUSD
	return r, r.Policy.BudgetUSD > 0
}

// AgentReport is what an invocation came to.
type AgentReport struct {
	escalation.Report
	// Output is the structured output; nil if the agent gave none.
	Output json.RawMessage
	// InFlight are the tool calls that had no result when the invocation ended.
	InFlight []ToolCall
	// Handoff is what the agent left, if it was asked to.
	Handoff LeftFile
}

// LeftFile is a file that an agent left for the supervisor. It is removed when it is read.
type LeftFile struct {
	// Content is nil if there was no file; of a very large one it is the beginning, which is too
	// large as well.
	Content []byte
	// Problem says why a file that there was is not read.
	Problem string
}

// AgentProgress is how far an invocation has come.
type AgentProgress struct {
	// PID is the number, on its host, of the process that all of the invocation's come of.
	PID    int                   `json:"pid,omitempty"`
	Turns  int                   `json:"turns"`
	Tokens escalation.TokenUsage `json:"tokens"`
	// CostUSD is an estimate until the invocation has ended.
	CostUSD float64 `json:"cost_usd"`
	// Tools are the latest tool calls, oldest first; a few, so that a heartbeat stays small.
	Tools []ToolCall `json:"tools,omitempty"`
	// InFlight are all tool calls that have no result yet, with their whole input up to a few KB.
	InFlight []ToolCall `json:"-"` // TierProgress holds them
}

// ToolCall is one use of a tool by an agent.
type ToolCall struct {
	// Number counts the tool calls of the invocation, from 1.
	Number int    `json:"number"`
	Name   string `json:"name"`
	// Input is a short one-line preview.
	Input string    `json:"input"`
	State ToolState `json:"state"`
}

// ToolState is how far a tool call has come.
type ToolState string

// The states.
const (
	ToolRunning ToolState = "running"
	ToolDone    ToolState = "done"
	ToolFailed  ToolState = "failed"
)
