package operations

import (
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Sessions shows sessions. The records answer, and the archive of conversations.
type Sessions struct{ *backend }

// SessionDetail is a session, with all that is recorded about it. Texts of agents are masked.
type SessionDetail struct {
	Session escalation.Session `json:"session"`
	// Parent is the session whose context this one continues; nil if there is none. Children are those that continue this one.
	Parent   *SessionRef  `json:"parent,omitempty"`
	Children []SessionRef `json:"children"`
	// Calls lists the decisions on the session's calls: first the denied ones, then the others, each in order.
	Calls []escalation.CallDecision `json:"calls"`
	// Denied and Allowed count all decisions. If there are more than 1,000, Calls lacks the latest allowed ones.
	Denied  int `json:"denied"`
	Allowed int `json:"allowed"`
	// Actions lists the restarts and redeployments of the session, oldest first.
	Actions []ServiceAction `json:"actions"`
	// Events lists the events of the session, oldest first.
	Events []escalation.Event `json:"events"`
	// Attempts lists what is known of the attempts at the session that did not become its report, oldest first.
	Attempts []PastAttempt `json:"attempts"`
	// Attempt is the current attempt at a running session; nil if the session has ended, or if Temporal cannot tell.
	Attempt *Attempt `json:"attempt,omitempty"`
	// Doing is one line about what a running session does now; empty if nobody knows.
	Doing        string       `json:"doing,omitempty"`
	Conversation Conversation `json:"conversation"`
}

// SessionRef names another session.
type SessionRef struct {
	Number     int64                       `json:"number"`
	ChainID    string                      `json:"chain_id"`
	Tier       escalation.Tier             `json:"tier"`
	Model      string                      `json:"model"`
	Status     escalation.SessionStatus    `json:"status"`
	Continuity escalation.Continuity       `json:"continuity"`
	Reason     escalation.ContinuityReason `json:"continuity_reason"`
	CostUSD    float64                     `json:"cost_usd"`
}

// PastAttempt is an attempt at a session, and why it ended.
type PastAttempt struct {
	At time.Time `json:"at"`
	// Why says in a sentence why the attempt ended, or why there was another one.
	Why string `json:"why"`
	// CostUSD is the cost of a report that another one has replaced after a reset, in US dollars; 0 for other attempts, whose
	// cost is part of the session's.
	CostUSD float64 `json:"cost_usd,omitempty"`
}

// Conversation is what a session has added to its conversation, from the CLI's transcript.
type Conversation struct {
	// Problem says why there are no messages, or why some are missing; empty if all is there.
	Problem string `json:"problem,omitempty"`
	// Messages lists the session's own messages, oldest first.
	Messages []Message `json:"messages"`
	// Inherited counts the messages that the session has taken over from its parent. They are left out.
	Inherited int `json:"inherited,omitempty"`
	// Omitted counts the session's own messages that are left out of the middle, because there are too many.
	Omitted int `json:"omitted,omitempty"`
	// Unreadable counts the lines of the transcript that are not in the form of a message, or are too long.
	Unreadable int `json:"unreadable,omitempty"`
	// Models is what the session's own messages have used, by model. A session with one model has cost what it has cost; the
	// cost of several models is not recorded.
	Models []ModelUse `json:"models"`
}

// ModelUse is what the messages of a model have used.
type ModelUse struct {
	Model string `json:"model"`
	// Messages counts the model's messages: one for each call of the API.
	Messages int                   `json:"messages"`
	Tokens   escalation.TokenUsage `json:"tokens"`
}

// Message is one message of a conversation, or one part of it: the CLI writes a line for each block.
type Message struct {
	// Number is the number of the message among all messages of the conversation, from 1.
	Number int         `json:"number"`
	At     time.Time   `json:"at,omitzero"`
	Role   MessageRole `json:"role"`
	Model  string      `json:"model,omitempty"`
	// Subagent reports whether the message belongs to an agent that the session's agent has started.
	Subagent bool `json:"subagent,omitempty"`
	// Text is what was said. OmittedBytes counts the bytes that were cut off its end.
	Text         string          `json:"text,omitempty"`
	OmittedBytes int             `json:"omitted_bytes,omitempty"`
	Calls        []MessageCall   `json:"calls,omitempty"`
	Results      []MessageResult `json:"results,omitempty"`
}

// MessageRole says who speaks.
type MessageRole string

// The roles.
const (
	RoleUser      MessageRole = "user"      // the supervisor's prompt, or the result of a call
	RoleAssistant MessageRole = "assistant" // the agent
	RoleSystem    MessageRole = "system"    // the CLI: for example, a summary has replaced what was before
)

// MessageCall is an agent's call of a tool.
type MessageCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Input is the input of the call: the command of Bash, and JSON for other tools.
	Input        string `json:"input"`
	OmittedBytes int    `json:"omitted_bytes,omitempty"`
}

// MessageResult is the result of a call.
type MessageResult struct {
	CallID       string `json:"call_id"`
	Text         string `json:"text"`
	IsError      bool   `json:"is_error,omitempty"`
	OmittedBytes int    `json:"omitted_bytes,omitempty"`
}
