package activities

import (
	"context"
	"encoding/json"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Agent runs the claude CLI.
type Agent interface {
	// Run runs one invocation to its end. It calls observe on one goroutine whenever something happens. When ctx ends,
	// Run stops the whole process tree before it returns, with the status escalation.SessionStopped. It returns an
	// error if and only if the same invocation may succeed later. Even then the report contains all known facts,
	// including the cost.
	//
	// If the invocation repairs, Run waits for its directory, for at most MaxDirectoryWait. If the directory is not
	// free by then, the error wraps ErrDirectoryBusy.
	Run(ctx context.Context, run AgentRun, observe func(AgentProgress)) (AgentReport, error)
	// HasConversation reports whether agents in directory can resume a conversation, from this host or from an archive.
	// An error means that the answer is currently unknown.
	HasConversation(ctx context.Context, directory, sessionID string) (bool, error)
}

// AgentRun is one invocation of the claude CLI for a tier.
type AgentRun struct {
	ChainID string
	// FirstRunID is the run ID with which the chain began. It distinguishes chains that had the same ID.
	FirstRunID string
	Tier       escalation.Tier
	// Repairs reports that the invocation may change files. Such an invocation gets its own git worktree, or it has
	// Directory for itself.
	Repairs bool
	// InWorktree returns the text that the prompt must contain if the agent works in a worktree. If Repairs is set,
	// InWorktree must be set, too.
	InWorktree func(escalation.Worktree) (string, error)
	// DryRun reports that the chain must change nothing.
	DryRun bool
	// Policy limits the permissions and the spending of the invocation.
	Policy escalation.TierPolicy
	// SessionID is the id of the conversation that the invocation writes.
	SessionID string
	// Directory is the agent's working directory; empty for the default one.
	Directory string
	// Resume is the conversation from which the invocation starts; empty for a new one. If it equals SessionID, the
	// invocation continues that conversation. Otherwise the invocation forks it.
	Resume string
	Prompt string
	// Schema is the JSON schema of the output; empty asks for none.
	Schema string
	// Cooldowns is the content of CooldownFile, which the agent finds in its chain's directory.
	Cooldowns []escalation.ServiceState
	// Limits limits how often the agent's calls may repair a service.
	Limits escalation.Cooldowns
	// LeavesHandoff reports that the agent is asked to write HandoffFile in that directory.
	LeavesHandoff bool
}

// after returns the run with its budget reduced by the spending in spent. If no budget is left, it returns false.
func (r AgentRun) after(spent escalation.Report) (AgentRun, bool) {
	if r.Policy.BudgetUSD == 0 {
		return r, true
	}
	r.Policy.BudgetUSD -= spent.CostUSD
	return r, r.Policy.BudgetUSD > 0
}

// AgentReport is the result of an invocation.
type AgentReport struct {
	escalation.Report
	// Output is the structured output; nil if the agent gave none.
	Output json.RawMessage
	// InFlight holds the tool calls that had no result when the invocation ended.
	InFlight []ToolCall
	// Handoff is the file that the agent wrote. It is empty if the agent was not asked for one.
	Handoff LeftFile
}

// LeftFile is a file that an agent wrote for the supervisor. The supervisor removes the file when it reads it.
type LeftFile struct {
	// Content is nil if there was no file. If the file exceeds the size limit, Content holds only the beginning. The
	// beginning is still longer than the limit.
	Content []byte
	// Problem is the reason why an existing file was not read.
	Problem string
}

// AgentProgress is the progress of an invocation.
type AgentProgress struct {
	// PID is the process id of the root of the invocation's process tree, on its host.
	PID    int                   `json:"pid,omitempty"`
	Turns  int                   `json:"turns"`
	Tokens escalation.TokenUsage `json:"tokens"`
	// CostUSD is an estimate until the invocation has ended.
	CostUSD float64 `json:"cost_usd"`
	// Tools holds the latest tool calls, oldest first. There are only a few, so that a heartbeat stays small.
	Tools []ToolCall `json:"tools,omitempty"`
	// Waiting names the thing for which the invocation waits before its agent starts; empty if it does not wait.
	Waiting string `json:"waiting,omitempty"`
	// InFlight holds all tool calls that have no result yet. Each has its whole input, up to a few KB.
	InFlight []ToolCall `json:"-"` // heartbeats send TierProgress.InFlight instead
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

// ToolState is the state of a tool call.
type ToolState string

// The states.
const (
	ToolRunning ToolState = "running"
	ToolDone    ToolState = "done"
	ToolFailed  ToolState = "failed"
)
