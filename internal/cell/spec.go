package cell

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

// Spec describes one run of an agent. SessionID, Model, Tier, Dir and a prompt are required; the zero value of every
// other field asks for nothing.
type Spec struct {
	// SessionID is the id of the conversation that the run writes: a UUID, which the caller chooses.
	SessionID string
	// Resume is the conversation to continue, of which the host must have a copy (see Host.Conversation); empty for a
	// new one. If it equals SessionID, that conversation is continued; otherwise the run writes a fork, and Resume
	// stays as it is.
	Resume string
	// Prompt is the message to the agent. If LatePrompt is not nil, it returns the message instead. It is called when
	// all else is ready, with the session's directory for temporary files; if it fails, so does the run, without an
	// agent.
	Prompt     string
	LatePrompt func(ctx context.Context, temporary string) (string, error)
	// SystemPrompt is added to the CLI's own system prompt.
	SystemPrompt string
	// Model is an alias such as "haiku", or a full name.
	Model string
	// Schema is the JSON schema of the verdict; empty for a run without one. TextField names a text in it that is
	// passed on while the agent writes it (Progress.Text).
	Schema, TextField string

	// Tier is the number of the policy's tier whose permissions apply: 1, 2 or 3. Tier 3 has no sandbox.
	Tier int
	// Policy replaces that of the host for the calls of this run; nil for the host's.
	Policy *guard.Policy
	// Tools lists the CLI's tools that exist for the agent. AllowedTools are permission rules of the CLI, which then
	// decide on what the guard allows; empty for none.
	Tools, AllowedTools []string
	// MaxTurns, BudgetUSD (US dollars) and Timeout (wall clock) end the run; 0 for no limit. The budget is checked
	// after each call of the model, so the last call can exceed it.
	MaxTurns  int
	BudgetUSD float64
	Timeout   time.Duration

	// Dir is the working directory: an absolute path that exists. Agents of Tier 1 cannot write in it.
	Dir string
	// Readable and Writable are further paths for the sandbox. Their links are resolved; what is missing is left out.
	Readable, Writable []string
	// Origin is the directory that Dir replaces if Dir is a git worktree of this session. The agent may read it, and
	// not change it.
	Origin string
	// GitSettings are names and values of git's configuration for the agent's commands.
	GitSettings [][2]string
	// Env adds variables for the agent and its commands.
	Env map[string]string
	// Workspace exchanges files with the agent; nil for none.
	Workspace *Workspace

	// Supervisor is asked and informed during the run; nil for nobody: then every act that the policy permits happens,
	// and only Result says what was refused.
	Supervisor Supervisor
}

// Workspace is a directory below Spec.Dir through which files are exchanged with an agent. It exists during the run
// only. If it cannot be made, for example in a read-only directory, the run goes on without it.
type Workspace struct {
	// Parent and Name are the names of two nested directories: Dir/Parent/Name. Sessions with the same Name must not
	// run at once.
	Parent, Name string
	// Variable is the environment variable that gets the absolute path; empty for none.
	Variable string
	// Files has the content of each file that the agent finds there, by its name.
	Files map[string][]byte
	// Asked is the name of a file that the agent is asked to leave; empty for none. MaxBytes is its largest size: of a
	// longer file, MaxBytes+1 bytes are returned.
	Asked    string
	MaxBytes int64
}

// Supervisor is what one run asks and tells. Its methods are called from several goroutines, and never after Run has
// returned.
type Supervisor interface {
	// Progress tells what the agent does, about once a second while something changes. It must return soon.
	Progress(p claude.Progress)
	// Decided tells the guard's decisions on calls, with unmasked inputs, before the agent learns them. If it fails,
	// they are told again together with later ones. The agent waits until ctx ends, after 5 seconds.
	Decided(ctx context.Context, decisions []Entry) error
	// Ledger is asked before each act on a service, such as a restart.
	Ledger
}

// Result says what a run did and cost, also if Run fails. Secrets in its texts are masked.
type Result struct {
	// Result is the CLI's own account: SessionID, Structured (the verdict's JSON), Turns, Tokens, InFlight, Duration.
	// CostUSD and CostEstimated are settled with the count of the proxy. Sandbox says in words what held the agent; it
	// is empty if none was started.
	claude.Result

	// Level says what held the agent.
	Level Level
	// Refused holds the first decisions of the guard against the agent, at most MaxRefused.
	Refused []Entry
	// Unarchived reports that the Archive lacks the end of the conversation.
	Unarchived bool
	// Left is the content of Workspace.Asked; nil if there is none. LeftProblem says why it could not be read.
	Left        []byte
	LeftProblem string
}

// MaxRefused limits Result.Refused.
const MaxRefused = 100
