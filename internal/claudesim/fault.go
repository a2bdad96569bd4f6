package claudesim

// Fault is what the stand-in does wrong while it plays a turn. The fields combine.
type Fault struct {
	// Times is how many processes are hit; 0 is every one. The count is kept beside the
	// scenario file, so a test can say: fail once, then work.
	Times int `json:"times,omitempty"`

	// Crash ends the process instead of letting it finish.
	Crash *Crash `json:"crash,omitempty"`
	// Hang stops the output for ever, at some point. SIGINT still ends the process.
	Hang HangPoint `json:"hang,omitempty"`
	// IgnoreInterrupt makes SIGINT and SIGTERM go unheard.
	IgnoreInterrupt bool `json:"ignore_interrupt,omitempty"`

	// Garbage are lines printed to stdout as they are, one after each proper line in turn.
	Garbage []string `json:"garbage,omitempty"`
	// PadLines is the number of bytes by which the text of every assistant line grows.
	PadLines int `json:"pad_lines,omitempty"`
	// LineDelay passes before each line.
	LineDelay Duration `json:"line_delay,omitempty"`
	// Stderr is written to stderr at the start.
	Stderr string `json:"stderr,omitempty"`

	// OmitSessionID leaves the session id out of every line.
	OmitSessionID bool `json:"omit_session_id,omitempty"`
	// OmitResult leaves out the result line; the process still exits 0.
	OmitResult bool `json:"omit_result,omitempty"`
	// OmitStructured leaves the structured output out of the result.
	OmitStructured bool `json:"omit_structured,omitempty"`
	// OmitWindow leaves the context window out of the model usage.
	OmitWindow bool `json:"omit_window,omitempty"`
	// RepeatResult is how many more result lines follow the first. Each says that
	// nothing was spent since the one before.
	RepeatResult int `json:"repeat_result,omitempty"`
	// ExitCode is the exit code after an otherwise normal end.
	ExitCode int `json:"exit_code,omitempty"`
	// Cost overrides how the release that is played reports the total cost.
	Cost CostMode `json:"cost,omitempty"`
}

// Crash is a process that dies.
type Crash struct {
	// After is the number of model calls that are answered, tools included, before it dies.
	After int `json:"after,omitempty"`
	// Code is the exit code; KilledBySelf stands for SIGKILL.
	Code   int    `json:"code"`
	Stderr string `json:"stderr,omitempty"`
}

// KilledBySelf as a Crash's code lets the process kill itself with SIGKILL, as the
// kernel's out-of-memory killer would.
const KilledBySelf = -9

// HangPoint is where the output stops.
type HangPoint string

// The points. Without one the output does not hang.
const (
	HangAtStart     HangPoint = "start"        // before the first line
	HangAfterInit   HangPoint = "after_init"   // before the first model call
	HangAfterReply  HangPoint = "after_reply"  // when the model has answered once
	HangAfterResult HangPoint = "after_result" // when everything is printed
)

// CostMode is how a total cost is reported.
type CostMode string

// The modes. Without one the release that is played decides.
const (
	CostCumulative CostMode = "cumulative"  // the conversation's total, carried through resume and fork
	CostPerProcess CostMode = "per_process" // this process's own
)
