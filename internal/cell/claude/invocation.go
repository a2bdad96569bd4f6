package claude

import "time"

// Invocation describes one start of the CLI. The CLI stores the messages of a conversation and no settings, so every
// Invocation must contain all settings.
type Invocation struct {
	// SessionID is the id of the conversation that this invocation writes. The caller chooses it; it must be a UUID.
	SessionID string
	// Resume is the id of the conversation to continue. If it is empty, the run starts a new conversation. If it equals
	// SessionID, the run continues that conversation in place. If Resume is another id, the run continues a copy with
	// the id SessionID, and the original stays unchanged.
	Resume string
	// Prompt is the user's message: not blank, at most MaxPromptBytes.
	Prompt string
	// Model is an alias ("haiku") or a full model name. It is required.
	Model string
	// SystemPrompt is added to the CLI's own system prompt, for this invocation only.
	SystemPrompt string
	// Schema is the JSON schema of the structured output, as text; empty asks for none.
	Schema string
	// TextField names a text field of the structured output. While the model writes that field, Progress.Text has its
	// beginning. If TextField is empty, Progress.Text stays empty.
	TextField string

	// Tools holds the built-in tools that exist for the agent. The list can be empty.
	Tools []string
	// AllowedTools holds the permission rules that grant calls. All other calls are denied.
	AllowedTools []string
	// DisallowedTools holds the permission rules that deny calls, even if AllowedTools grants them.
	DisallowedTools []string

	// MaxTurns limits the number of turns; 0 means no limit.
	MaxTurns int
	// MaxBudgetUSD limits the cost of the run in US dollars; 0 means no limit. The CLI checks the limit after each API
	// call, so a run can cost more.
	MaxBudgetUSD float64
	// Limits are the time limits.
	Limits Limits

	// Dir is the working directory. It is required and must exist.
	Dir string
	// Env adds variables to the environment of the CLI and of every command it runs. These variables override those of
	// Options.Environ, but not the variables that this package sets itself. CLAUDE_CONFIG_DIR and HOME are exceptions:
	// with them an invocation has directories of its own, which the caller creates, removes and grants to the Sandbox.
	Env map[string]string
	// GitSettings holds names and values of git's configuration for the agent's commands. They override the
	// configuration of any repository. This package adds further settings.
	GitSettings [][2]string
	// Sandbox restricts the CLI and all processes that it starts; nil means no restriction. This package adds the files
	// and directories that the CLI itself must read and write.
	Sandbox *Sandbox
	// API is the endpoint of the model's API. If it is nil, the CLI uses the address and credentials of
	// Options.Environ.
	API *Endpoint
	// Guard makes the CLI ask for permission before every tool call. If Guard is nil, the permission rules decide, and
	// the CLI asks for no permission.
	Guard *Guard
}

// Guard configures the hooks through which the CLI asks for permission before tool calls.
type Guard struct {
	// Settings holds additional settings of the CLI, including the hooks.
	Settings map[string]any
	// Env holds environment variables that override all others.
	Env map[string]string
	// Started is called when the CLI has started; it may be nil. The processes of the tree may ask for permission.
	Started func(Tree)
}

// Endpoint is an address of the model's API, and a key for it. The address and the key replace the address and the
// credentials in Options.Environ. With an Endpoint, no variable of the invocation contains the replaced credentials.
type Endpoint struct {
	URL string
	Key string
}

// Limits holds the time limits of an invocation. A limit of zero does not apply.
type Limits struct {
	// Wall is the longest time from start to end.
	Wall time.Duration
	// FirstByte limits the time from the start to the first output.
	FirstByte time.Duration
	// Idle limits the time between two outputs. The CLI prints nothing while a tool runs, so Idle must be longer than
	// the longest command of the agent. For a command and for an API call the CLI has its own limits, which are shorter
	// than Idle. The difference is one minute or, if Idle is under two minutes, half of Idle. The limit for an API call
	// is never more than five minutes.
	Idle time.Duration
	// Grace is the time between SIGINT and SIGKILL. Zero means process.DefaultGrace.
	Grace time.Duration
}
