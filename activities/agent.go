package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Agent runs the claude CLI.
type Agent interface {
	// Run runs one invocation to its end. It calls observe on one goroutine whenever the progress changes. When ctx
	// ends, Run stops the whole process tree before it returns, and the report has the status
	// escalation.SessionStopped. If the CLI has run and given no result, the report's Ending says why; escalation.Treat
	// says what follows. Run returns an error if the CLI could not run, or if the worker interrupts it: a later attempt
	// can succeed. Even with an error, the report contains all known facts, including the cost.
	//
	// If run.Repairs is set, Run waits at most MaxDirectoryWait for the directory. If the directory is not free by
	// then, the error wraps ErrDirectoryBusy.
	Run(ctx context.Context, run AgentRun, observe func(AgentProgress)) (AgentReport, error)
	// HasConversation reports whether an agent in directory can resume a conversation whose transcript is on this host
	// or in an archive. An error means that the answer is currently unknown.
	HasConversation(ctx context.Context, directory, sessionID string) (bool, error)
	// Concluded returns the report of a session that has given its structured output, although its process did not come
	// to report it; nil if it has not. Its cost is an estimate. As at the end of Run, the conversation is archived
	// first. It ends what is left of the session's processes. The argument parentID is the conversation that the
	// session forked; empty if there is none. Call it only if HasConversation has found the conversation.
	Concluded(ctx context.Context, sessionID, parentID string) (*AgentReport, error)
}

// AgentRun is one invocation of the claude CLI for a tier.
type AgentRun struct {
	ChainID string
	// FirstRunID is the run ID with which the chain began. Several chains, one after the other, can have the same
	// workflow ID and differ in FirstRunID.
	FirstRunID string
	Tier       escalation.Tier
	// Repairs reports that the invocation is permitted to change files. Such an invocation gets a git worktree of its
	// own. If it gets no worktree, it waits until no other repairing invocation runs in Directory.
	Repairs bool
	// Inspect reports that the report must contain what the invocation commits in its worktree. Since is the commit
	// that was reviewed before; empty if there is none.
	Inspect bool
	Since   string
	// Base is a commit of the chain that was pushed, from which the change is shown; empty for the commit with which
	// the work began.
	Base string
	// At is the commit that the worktree must have, at least; zero for what is committed in Directory, or for
	// Authoring.From. Carry reports that the report's Change must contain its commits for other hosts, as that of an
	// author always does.
	At    Checkpoint
	Carry bool
	// Interrupted reports that the invocation goes on with interrupted work: what its worktree has instead of At stays.
	Interrupted bool
	// Authoring says how an author works on a plan; nil for any other invocation. An author never works without a
	// worktree, and pushes nothing.
	Authoring *Authoring
	// InWorktree returns a text that describes a worktree. If the agent works in a worktree, the prompt must contain
	// this text. If Repairs is set, InWorktree must not be nil.
	InWorktree func(escalation.Worktree) (string, error)
	// Shown is a commit whose files the invocation gets in a directory of its own; nil for none.
	Shown *Shown
	// DryRun reports that the chain must change nothing.
	DryRun bool
	// Policy limits the permissions and the spending of the invocation.
	Policy escalation.TierPolicy
	// SessionID is the id of the conversation that the invocation writes.
	SessionID string
	// First reports that this is the session's first attempt, and that there is no conversation of it. Otherwise Run
	// first ends what earlier attempts have left on this host: two agents must never work on one conversation.
	First bool
	// Directory is the agent's working directory; empty for the default one.
	Directory string
	// Resume is the conversation from which the invocation starts; empty for a new conversation. If Resume equals
	// SessionID, the invocation continues that conversation. If they differ, the invocation forks the conversation
	// Resume.
	Resume string
	Prompt string
	// LatePrompt returns a prompt that is still being made. Run calls it when everything else is ready. If it fails,
	// Run returns its error without an agent. It is nil if Prompt is the prompt, as it must be in a worktree.
	LatePrompt func() (string, error)
	// SystemPrompt is added to the system prompt; empty if there is nothing to add. A new version of the CLI ignores it
	// when it resumes a conversation that began with another one.
	SystemPrompt string
	// Schema is the JSON schema of the structured output; empty if no structured output is needed.
	Schema string
	// TextField names a text field of the structured output that people read while the agent writes it; empty if there
	// is none.
	TextField string
	// ChainFiles reports that the agent gets a directory of its chain, with CooldownFile.
	ChainFiles bool
	// Cooldowns is the content of CooldownFile.
	Cooldowns []escalation.ServiceState
	// Limits holds the limits on how often the agent can repair a service.
	Limits escalation.Cooldowns
	// Now returns the time by Temporal's clock. The clock of this host may be wrong.
	Now func() time.Time
	// LeavesHandoff reports that the prompt asks the agent to write HandoffFile in its chain's directory.
	LeavesHandoff bool
}

// Shown is a commit whose files an invocation gets to read.
type Shown struct {
	Checkpoint
	// Describe returns a text for the prompt that names the directory with the files, or says why there is none. One of
	// the two arguments is empty.
	Describe func(directory, problem string) (string, error)
}

// Authoring says how an author works on a plan.
type Authoring struct {
	// Plan is the path of the plan below AgentRun.Directory. The report's Change contains the plan.
	Plan string
	// From is the commit with which the worktree begins. The change is shown from there.
	From Checkpoint
	// Begins reports that no author has worked on the phase yet: the worktree begins with From itself.
	Begins bool
	// Whole means that the patch of the change shows the whole plan, and nothing else.
	Whole bool
}

// after returns the run with a budget that is reduced by the cost in spent. If no budget is left, after returns false.
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
	// Output is the structured output; nil if the agent gave no structured output.
	Output json.RawMessage
	// InFlight holds the tool calls that had no result when the invocation ended.
	InFlight []ToolCall
	// Handoff is the content of HandoffFile; zero if the agent was not asked for a handoff.
	Handoff LeftFile
	// Change describes the commits of the invocation; nil if it has committed nothing, or was not to be inspected.
	Change *Change
	// Calls lists the IDs of calls that somebody must have allowed; only the report of Concluded has it.
	Calls []string
	// Unarchived reports that the archive lacks the end of the conversation, because it could not be saved there. If
	// this host is lost, so is that.
	Unarchived bool
}

// LeftFile is a file that an agent wrote for the supervisor. The supervisor removes the file when it reads it.
type LeftFile struct {
	// Content is nil if there was no file. If the file exceeds the size limit, Content holds only the beginning. This
	// beginning is longer than the limit, so that the reader can detect the excess.
	Content []byte
	// Problem is the reason for which an existing file was not read; empty if the file was read or does not exist.
	Problem string
}

// AgentProgress is the progress of an invocation.
type AgentProgress struct {
	// PID is the process id of the root of the invocation's process tree, on the agent's host.
	PID    int                   `json:"pid,omitempty"`
	Turns  int                   `json:"turns"`
	Tokens escalation.TokenUsage `json:"tokens"`
	// CostUSD is an estimate until the invocation has ended.
	CostUSD float64 `json:"cost_usd"`
	// Tools holds the latest tool calls, oldest first. The list is short, so that a heartbeat stays small.
	Tools []ToolCall `json:"tools,omitempty"`
	// Waiting describes the reason for which the invocation waits before its agent starts; empty if the invocation does
	// not wait.
	Waiting string `json:"waiting,omitempty"`
	// Text is the beginning of the field AgentRun.TextField as far as the agent has written it, up to 16 KB.
	Text string `json:"text,omitempty"`
	// InFlight holds all tool calls that have no result yet. Each call has its whole input, up to a few KB.
	InFlight []ToolCall `json:"-"` // heartbeats send TierProgress.InFlight instead
}

// ToolCall is one use of a tool by an agent.
type ToolCall struct {
	// Number counts the tool calls of the invocation, from 1.
	Number int    `json:"number"`
	Name   string `json:"name"`
	// Input is a short preview of the call's input on one line.
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
