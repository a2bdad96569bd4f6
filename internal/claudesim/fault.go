package claudesim

// Fault makes the stand-in misbehave while it plays a turn. All fields can be combined.
type Fault struct {
	// Times is the number of processes that the fault affects; 0 means all processes. The stand-in counts the affected
	// processes in a directory beside the scenario file. So a test's first process can fail and its second process can
	// succeed.
	Times int `json:"times,omitempty"`

	// Crash ends the process early.
	Crash *Crash `json:"crash,omitempty"`
	// Hang stops the output permanently at the given point. SIGINT still ends the process.
	Hang HangPoint `json:"hang,omitempty"`
	// IgnoreInterrupt makes the process ignore SIGINT and SIGTERM.
	IgnoreInterrupt bool `json:"ignore_interrupt,omitempty"`

	// Garbage lists lines for stdout. After each regular line the stand-in prints the next line of the list, unchanged.
	Garbage []string `json:"garbage,omitempty"`
	// PadLines is the number of bytes that are added to the text of every assistant line.
	PadLines int `json:"pad_lines,omitempty"`
	// LineDelay is the pause before each line of the output.
	LineDelay Duration `json:"line_delay,omitempty"`
	// Stderr is written to stderr at the start.
	Stderr string `json:"stderr,omitempty"`

	// OmitSessionID omits the session id from every line.
	OmitSessionID bool `json:"omit_session_id,omitempty"`
	// OmitResult omits the result line. The exit code does not change.
	OmitResult bool `json:"omit_result,omitempty"`
	// OmitStructured omits the structured output from the result.
	OmitStructured bool `json:"omit_structured,omitempty"`
	// OmitWindow omits the context window from the model usage.
	OmitWindow bool `json:"omit_window,omitempty"`
	// RepeatResult is the number of additional result lines. Each additional line reports no usage since the previous
	// result line.
	RepeatResult int `json:"repeat_result,omitempty"`
	// ExitCode replaces the exit code after an otherwise normal end.
	ExitCode int `json:"exit_code,omitempty"`
	// Cost overrides the way in which the played release reports the total cost.
	Cost CostMode `json:"cost,omitempty"`
}

// Crash ends the process after a number of model calls.
type Crash struct {
	// After is the number of model calls before the crash. The model answers these calls, and the stand-in runs the
	// tool calls in the answers.
	After int `json:"after,omitempty"`
	// Code is the exit code; KilledBySelf means SIGKILL.
	Code   int    `json:"code"`
	Stderr string `json:"stderr,omitempty"`
}

// KilledBySelf is a Crash code. The process sends itself SIGKILL, as the kernel's out-of-memory killer would.
const KilledBySelf = -9

// HangPoint is the point at which the output stops.
type HangPoint string

// The points at which the output can stop. With an empty HangPoint it does not stop.
const (
	HangAtStart     HangPoint = "start"        // before the first line
	HangAfterInit   HangPoint = "after_init"   // before the first model call
	HangAfterReply  HangPoint = "after_reply"  // after the model's first answer
	HangAfterResult HangPoint = "after_result" // after everything is printed
)

// CostMode is a way of reporting a total cost.
type CostMode string

// The modes of reporting the total cost. With an empty CostMode the played release decides.
const (
	CostCumulative CostMode = "cumulative"  // the total of the conversation, including earlier processes
	CostPerProcess CostMode = "per_process" // the total of this process
)
