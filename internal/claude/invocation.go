package claude

import "time"

// Invocation describes one start of the CLI. A conversation keeps only the messages, so every invocation is complete.
type Invocation struct {
	// SessionID is the id of the conversation that this invocation writes: a UUID of the caller's choice.
	SessionID string
	// Resume is the conversation to continue. Empty starts a new one. SessionID continues that one in place. Any other
	// conversation is copied to SessionID and stays unchanged.
	Resume string
	// Prompt is the user's message: not blank, at most MaxPromptBytes.
	Prompt string
	// Model is an alias ("haiku") or a full model name. Required.
	Model string
	// SystemPrompt is added to the CLI's own system prompt, for this invocation only.
	SystemPrompt string
	// Schema is the JSON schema of the structured output, as text; empty asks for none.
	Schema string

	// Tools are the built-in tools that exist for the agent. The list may be empty.
	Tools []string
	// AllowedTools are the permission rules that grant calls. All other calls are denied.
	AllowedTools []string
	// DisallowedTools are the permission rules that deny calls, even if AllowedTools grants them.
	DisallowedTools []string

	// MaxTurns is the largest number of turns; 0 is no limit.
	MaxTurns int
	// MaxBudgetUSD ends the run when it has cost that much, in US dollars. It is checked after each API call, so a run can
	// cost more. 0 is no limit.
	MaxBudgetUSD float64
	// Limits are the time limits.
	Limits Limits

	// Dir is the working directory; it must exist. Required.
	Dir string
	// Env adds variables to the environment of the CLI and of every command it runs. They override those of
	// Options.Environ, but not the variables that this package sets itself.
	Env map[string]string
	// Sandbox restricts the CLI and all that it starts; nil does not. This package adds what the CLI itself needs to read
	// and write.
	Sandbox *Sandbox
	// API is the endpoint of the model's API. If it is nil, the CLI uses the address and credentials of Options.Environ.
	API *Endpoint
	// Guard makes the CLI ask before every tool call. If it is nil, only the permission rules decide.
	Guard *Guard
}

// Guard configures the hooks by which the CLI asks before tool calls.
type Guard struct {
	// Settings are added to the CLI's settings and contain its hooks.
	Settings map[string]any
	// Env is added to the environment and overrides everything else there.
	Env map[string]string
}

// Endpoint is an address of the model's API, and a key for it. They replace the credentials of Options.Environ: no
// variable of the invocation contains those.
type Endpoint struct {
	URL string
	Key string
}

// Limits are the time limits of an invocation. A limit of zero does not apply.
type Limits struct {
	// Wall is the longest time from start to end.
	Wall time.Duration
	// FirstByte is the longest time from the start to the first output.
	FirstByte time.Duration
	// Idle is the longest time between two outputs. The CLI prints nothing while a tool runs, so this must be longer than
	// the longest command the agent may run. The CLI ends a command, or a call of the API, one minute before this limit.
	// If the limit is under two minutes, the CLI does so after half of it.
	Idle time.Duration
	// Grace is the time between SIGINT and SIGKILL; zero is process.DefaultGrace.
	Grace time.Duration
}
