package claude

import "time"

// Invocation is one start of the CLI. A conversation remembers nothing of it but the
// messages, so each invocation is complete.
type Invocation struct {
	// SessionID is the id of the conversation that this invocation writes: a UUID of the caller's choice.
	SessionID string
	// Resume is the conversation to continue: empty starts a new one, SessionID itself continues in
	// place, and any other id is copied to SessionID and stays as it was.
	Resume string
	// Prompt is what the user says: not blank, at most MaxPromptBytes.
	Prompt string
	// Model is an alias ("haiku") or a full model name. Required.
	Model string
	// SystemPrompt is added to the CLI's own system prompt. It holds for this invocation only.
	SystemPrompt string
	// Schema is a JSON schema, as text, that the agent's conclusion must meet; empty asks for none.
	Schema string

	// Tools are the built-in tools that exist; none of them is a valid choice.
	Tools []string
	// AllowedTools are the permission rules that grant. What none of them grants is denied.
	AllowedTools []string
	// DisallowedTools are the permission rules that deny, whatever grants.
	DisallowedTools []string

	// MaxTurns ends the run after that many turns; 0 is no limit.
	MaxTurns int
	// MaxBudgetUSD ends the run once that much is spent, in US dollars. It is checked after an API
	// call, so it overshoots. 0 is no limit.
	MaxBudgetUSD float64
	// Limits are the limits in time.
	Limits Limits

	// Dir is the working directory; it must exist. Required.
	Dir string
	// Env adds variables to the environment of the CLI and of every command it runs. It wins over
	// what is passed on from Options.Environ, but not over the variables this package sets itself.
	Env map[string]string
	// Sandbox is what the kernel keeps the CLI and all that it starts from, beside what the CLI itself needs to read
	// and write, which this package adds; nil is nothing.
	Sandbox *Sandbox
	// API is where the model is reached. nil leaves that, and the credentials, to Options.Environ.
	API *Endpoint
	// Guard makes the CLI ask before every call of a tool; nil leaves the calls to the permission rules alone.
	Guard *Guard
}

// Guard is whom the CLI asks, in its own words.
type Guard struct {
	// Settings are added to the CLI's settings: its hooks.
	Settings map[string]any
	// Env is added to the environment, and wins over everything else there.
	Env map[string]string
}

// Endpoint is an address of the model's API, and a key that is valid there. The invocation gets them in place of
// the credentials of Options.Environ, which are then in no variable of it.
type Endpoint struct {
	URL string
	Key string
}

// Limits bound an invocation in time. A zero limit does not apply.
type Limits struct {
	// Wall is the time from start to end.
	Wall time.Duration
	// FirstByte is the time from start to the first output.
	FirstByte time.Duration
	// Idle is the time between two outputs. The CLI is silent while a tool runs, so this must be
	// longer than the longest command the agent may run: the CLI is told to end a command, and a call
	// of the API, a minute before that, or after half of it if it is less than two minutes.
	Idle time.Duration
	// Grace is the time the CLI gets to end after it was told to; zero is process.DefaultGrace.
	Grace time.Duration
}
