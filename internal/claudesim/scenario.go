package claudesim

import "time"

// Version is a release of the CLI that the stand-in can simulate.
type Version string

// The measured releases.
const (
	VersionOld Version = "2.1.286"
	VersionNew Version = "2.1.332"
)

// Scenario is a script with the model's replies and with failures. The zero value answers nothing.
type Scenario struct {
	// Version is the release that the stand-in simulates; empty means VersionNew. NewAPI ignores Version, because the
	// real CLI has a version of its own.
	Version Version `json:"version,omitempty"`
	// ClaimedVersion replaces Version in --version and in the init event. It simulates an untested release.
	ClaimedVersion string `json:"claimed_version,omitempty"`
	// HookTimeout replaces the time limit of every hook; 0 means the limits of --settings. If a hook is meant to hang,
	// set a short HookTimeout, so that the test does not wait for the usual limit.
	HookTimeout Duration `json:"hook_timeout,omitempty"`
	// Turns are tried in order. The first turn that matches a request answers it.
	Turns []Turn `json:"turns"`
}

// Turn is the script for one prompt: the model's replies, in the order of the model calls after the prompt.
type Turn struct {
	// Name identifies the turn in error messages.
	Name    string  `json:"name,omitempty"`
	Match   Match   `json:"match,omitzero"`
	Replies []Reply `json:"replies"`
	Fault   *Fault  `json:"fault,omitempty"`
}

// Match selects requests. All fields that are set must match. The zero value matches everything.
type Match struct {
	// Model is text that the model's name must contain: "haiku" matches every haiku model.
	Model string `json:"model,omitempty"`
	// Prompt is text that the last prompt must contain. A person or the supervisor wrote that prompt.
	Prompt string `json:"prompt,omitempty"`
	// First is text that the conversation's first prompt must contain.
	First string `json:"first,omitempty"`
	// Anywhere is text that a message of the conversation or the system prompt must contain.
	Anywhere string `json:"anywhere,omitempty"`
	// System is text that the system prompt must contain. The stand-in's system prompt is only the text of
	// --append-system-prompt.
	System string `json:"system,omitempty"`
	// Tools lists tools. A request matches only if it offers all of them to the model.
	Tools []string `json:"tools,omitempty"`
	// NoTools lists tools. A request matches only if it offers none of them to the model.
	NoTools []string `json:"no_tools,omitempty"`
}

// Reply is one answer of the model: thinking, then text, then tool calls, then structured output.
type Reply struct {
	// Thinking holds the text of a thinking block. It has a signature that only the same model accepts.
	Thinking string     `json:"thinking,omitempty"`
	Text     string     `json:"text,omitempty"`
	Calls    []ToolCall `json:"calls,omitempty"`
	// Structured is the input of a call of the StructuredOutput tool. It must encode to a JSON object. If the request
	// does not offer this tool, the reply omits the call. If the reply then has no other content, its text is the JSON
	// object.
	Structured any `json:"structured,omitempty"`
	// Stop is the API's reason for the end of the answer, if it is not that the model has finished: StopRefusal or
	// StopMaxTokens.
	Stop string `json:"stop,omitempty"`
	// CreditsUntil reports that a limit of the account is used up until then, in seconds since 1970, and that the
	// account pays for this answer beyond it; 0 if not.
	CreditsUntil int64 `json:"credits_until,omitempty"`
	// Usage is the token usage of this call; nil means DefaultUsage.
	Usage *Usage `json:"usage,omitempty"`
	// Delay is the pause before the answer.
	Delay Duration `json:"delay,omitempty"`
	// PieceDelay streams each block in pieces of a few words, with this pause before each piece; 0 streams it in one
	// piece.
	PieceDelay Duration `json:"piece_delay,omitempty"`
	// Error replaces the answer. Error.Times is the number of attempts that get the error.
	Error *APIError `json:"error,omitempty"`
}

// ToolCall is a call of a tool by the model. The stand-in really executes calls of Bash, Read and Write.
type ToolCall struct {
	Name string `json:"name"`
	// Input must encode to the JSON object that the tool takes.
	Input any `json:"input"`
}

// Usage counts the tokens of one model call, as the API reports them.
type Usage struct {
	Input         int `json:"input"`
	Output        int `json:"output"`
	CacheRead     int `json:"cache_read,omitempty"`
	CacheCreation int `json:"cache_creation,omitempty"`
}

// DefaultUsage returns the usage of a reply whose Usage is nil.
func DefaultUsage() Usage { return Usage{Input: 100, Output: 40, CacheRead: 30, CacheCreation: 20} }

// APIError is a failure of the Messages API.
type APIError struct {
	// Status is the HTTP status. StatusRefused closes the connection without an answer.
	Status int `json:"status"`
	// Message is the API's explanation. If it is empty, the default for Status is used.
	Message string `json:"message,omitempty"`
	// Times is the number of attempts at an identical request that fail before one succeeds; 0 means all.
	Times int `json:"times,omitempty"`
	// LimitedUntil is the end of an account's limit that the answer names, in seconds since 1970; 0 if it names none.
	LimitedUntil int64 `json:"limited_until,omitempty"`
	// LimitKind is the API's name for that limit; empty for that of five hours.
	LimitKind string `json:"limit_kind,omitempty"`
}

// Values of Reply.Stop.
const (
	StopRefusal   = "refusal"    // the model, or a safeguard of it, refuses
	StopMaxTokens = "max_tokens" // the answer has reached its largest size
)

// Statuses of an APIError that are no HTTP status.
const (
	StatusRefused = -1 // the connection is closed without an answer
	// StatusNoLogin: the stand-in has no credentials, and does not call the API; the real CLI must be started without
	// any
	StatusNoLogin = -2
)

// PromptTooLong is the API's message for a conversation that exceeds the model's window.
const PromptTooLong = "prompt is too long: 210000 tokens > 200000 maximum"

// Duration is a time.Duration that is encoded as text ("1.5s") in JSON.
type Duration time.Duration

// Std returns d as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }
