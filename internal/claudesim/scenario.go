package claudesim

import "time"

// Version is a release of the CLI whose behaviour the stand-in knows.
type Version string

// The releases that were measured.
const (
	VersionOld Version = "2.1.197"
	VersionNew Version = "2.1.330"
)

// Scenario is what the model says, and what goes wrong. The zero value answers nothing.
type Scenario struct {
	// Version is the release that the stand-in pretends to be; empty is VersionNew.
	// It is a property of the program: the API ignores it.
	Version Version `json:"version,omitempty"`
	// ClaimedVersion is what --version and the init event report instead of Version,
	// for releases that nobody has tested.
	ClaimedVersion string `json:"claimed_version,omitempty"`
	// Turns are tried in order; the first that matches a request answers it.
	Turns []Turn `json:"turns"`
}

// Turn is the script for one prompt: the model's replies, in the order of the model
// calls that follow the prompt.
type Turn struct {
	// Name tells turns apart in error messages.
	Name    string  `json:"name,omitempty"`
	Match   Match   `json:"match,omitzero"`
	Replies []Reply `json:"replies"`
	Fault   *Fault  `json:"fault,omitempty"`
}

// Match selects requests. Every field that is set must hold; the zero value matches all.
type Match struct {
	// Model is contained in the model's name: "haiku" matches every haiku.
	Model string `json:"model,omitempty"`
	// Prompt is contained in the last prompt that a person (or supervisor) wrote.
	Prompt string `json:"prompt,omitempty"`
	// First is contained in the first prompt of the conversation.
	First string `json:"first,omitempty"`
	// System is contained in the system prompt. The stand-in's holds the appended text only.
	System string `json:"system,omitempty"`
	// Tools are all offered to the model.
	Tools []string `json:"tools,omitempty"`
	// NoTools are none of them offered to the model.
	NoTools []string `json:"no_tools,omitempty"`
}

// Reply is one answer of the model: text, then tool calls, then structured output.
type Reply struct {
	Text  string     `json:"text,omitempty"`
	Calls []ToolCall `json:"calls,omitempty"`
	// Structured is the input of a call of the StructuredOutput tool: anything that
	// encodes to a JSON object. It is left out where the request does not offer that tool.
	Structured any `json:"structured,omitempty"`
	// Usage is the tokens of this call; nil is DefaultUsage.
	Usage *Usage `json:"usage,omitempty"`
	// Delay passes before the answer begins.
	Delay Duration `json:"delay,omitempty"`
	// Error is answered instead of the rest, Error.Times times.
	Error *APIError `json:"error,omitempty"`
}

// ToolCall is a tool that the model calls. Bash, Read and Write really run.
type ToolCall struct {
	Name string `json:"name"`
	// Input encodes to the JSON object that the tool takes.
	Input any `json:"input"`
}

// Usage counts the tokens of one model call, as the API reports them.
type Usage struct {
	Input         int `json:"input"`
	Output        int `json:"output"`
	CacheRead     int `json:"cache_read,omitempty"`
	CacheCreation int `json:"cache_creation,omitempty"`
}

// DefaultUsage is the usage of a reply that states none.
func DefaultUsage() Usage { return Usage{Input: 100, Output: 40, CacheRead: 30, CacheCreation: 20} }

// APIError is a failure of the Messages API.
type APIError struct {
	// Status is the HTTP status. StatusRefused stands for no answer at all.
	Status int `json:"status"`
	// Message is the API's explanation; empty is a plain one for Status.
	Message string `json:"message,omitempty"`
	// Times is how many attempts of one and the same request fail before one succeeds; 0 is all.
	Times int `json:"times,omitempty"`
}

// StatusRefused makes an APIError a connection that is closed before any answer.
const StatusRefused = -1

// PromptTooLong is the message by which the API says that a conversation outgrew the window.
const PromptTooLong = "prompt is too long: 210000 tokens > 200000 maximum"

// Duration is a time.Duration that is written as text ("1.5s") in JSON.
type Duration time.Duration

// Std returns d as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }
