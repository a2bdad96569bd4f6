package claude

const (
	// maxStderrBytes is how much of the CLI's standard error an Error keeps.
	maxStderrBytes = 4096
	// maxMessageRunes is how long an Error's message about a run is at most.
	maxMessageRunes = 500
)

// ErrorKind classifies what went wrong, by what a caller can do about it.
type ErrorKind string

// The kinds. None of them says that nothing was done: an agent may have acted before.
const (
	KindInvalid            ErrorKind = "invalid_invocation"   // rejected before start: the Invocation itself is wrong
	KindNotStarted         ErrorKind = "not_started"          // the executable could not be started
	KindUsage              ErrorKind = "usage"                // the CLI rejected its arguments
	KindNoConversation     ErrorKind = "no_conversation"      // the conversation to resume does not exist here
	KindSessionInUse       ErrorKind = "session_in_use"       // the id for the new conversation is taken
	KindPromptTooLong      ErrorKind = "prompt_too_long"      // the conversation no longer fits the model's window
	KindAuth               ErrorKind = "auth"                 // the API refused the credentials (401, 403), or there are none
	KindUnavailable        ErrorKind = "unavailable"          // the API was overloaded, limited, failing or out of reach
	KindRefused            ErrorKind = "refused"              // the API refused the request (any other 4xx)
	KindMaxTurns           ErrorKind = "max_turns"            // Invocation.MaxTurns is used up
	KindBudget             ErrorKind = "budget"               // Invocation.MaxBudgetUSD is used up
	KindSchemaNotMet       ErrorKind = "schema_not_met"       // the agent tried, and never met Invocation.Schema
	KindNoStructuredOutput ErrorKind = "no_structured_output" // a good run, but the agent gave no structured output
	KindTimedOut           ErrorKind = "timed_out"            // Limits.Wall
	KindStalled            ErrorKind = "stalled"              // Limits.FirstByte or Limits.Idle
	KindStopped            ErrorKind = "stopped"              // the caller's context ended
	KindMalformed          ErrorKind = "malformed"            // it ended without a result, or with one that makes no sense
	KindDiskFull           ErrorKind = "disk_full"            // its output was lost, because the disk that takes it is full
	KindOutputTooLong      ErrorKind = "output_too_long"      // it was stopped, because it printed more than any run should
	KindFailed             ErrorKind = "failed"               // the CLI reported a failure of another kind
)

// Error is a run that did not end well.
type Error struct {
	Kind ErrorKind
	// Message is one sentence for a person.
	Message string
	// ExitCode is the CLI's exit code; -1 when a signal ended it or it did not start.
	ExitCode int
	// APIStatus is the HTTP status of the API's last answer, as reported; 0 is none.
	APIStatus int
	// Stderr is the end of what the CLI wrote to its standard error, secrets masked.
	Stderr string
	// Err is the cause, if there is one beside the CLI's own words.
	Err error
}

// Error returns Message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same invocation, continued in place if its conversation exists
// by then, has a chance to succeed without anyone changing anything.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case KindNotStarted, KindUnavailable, KindStalled, KindMalformed, KindFailed:
		return true
	case KindInvalid, KindUsage, KindNoConversation, KindSessionInUse, KindPromptTooLong, KindAuth,
		KindRefused, KindMaxTurns, KindBudget, KindSchemaNotMet, KindNoStructuredOutput,
		KindTimedOut, KindStopped, KindDiskFull, KindOutputTooLong:
		return false
	}
	return false
}
