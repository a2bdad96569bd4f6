package claude

import "time"

const (
	// maxStderrBytes limits Error.Stderr.
	maxStderrBytes = 4096
	// maxMessageRunes limits Error.Message, in characters.
	maxMessageRunes = 500
)

// ErrorKind classifies an error by the reaction that a caller can choose.
type ErrorKind string

// The kinds of errors. After an error of any kind, assume that the agent has possibly acted already.
const (
	KindInvalid        ErrorKind = "invalid_invocation" // rejected before start: the Invocation itself is wrong
	KindNotStarted     ErrorKind = "not_started"        // the executable could not be started
	KindUsage          ErrorKind = "usage"              // the CLI rejected its arguments
	KindNoConversation ErrorKind = "no_conversation"    // the conversation to resume does not exist here
	KindSessionInUse   ErrorKind = "session_in_use"     // the id for the new conversation is taken
	KindPromptTooLong  ErrorKind = "prompt_too_long"    // the conversation no longer fits the model's window
	// KindAuth: the API refused the credentials or the account, or there are none
	KindAuth ErrorKind = "auth"
	// KindUnavailable: the API was overloaded, rate limited, failing or unreachable
	KindUnavailable        ErrorKind = "unavailable"
	KindLimited            ErrorKind = "limited"              // a subscription's limit is used up until Error.Until
	KindRequest            ErrorKind = "request"              // the API refused the request (any other 4xx)
	KindRefused            ErrorKind = "refused"              // the model, or a safeguard of it, refused to answer
	KindAnswerTooLong      ErrorKind = "answer_too_long"      // the model's answers reached their largest size
	KindMaxTurns           ErrorKind = "max_turns"            // Invocation.MaxTurns is used up
	KindBudget             ErrorKind = "budget"               // Invocation.MaxBudgetUSD is used up
	KindSchemaNotMet       ErrorKind = "schema_not_met"       // no output of the agent met Invocation.Schema
	KindNoStructuredOutput ErrorKind = "no_structured_output" // the run succeeded, but without structured output
	KindTimedOut           ErrorKind = "timed_out"            // the run exceeded Limits.Wall
	// KindStalled: the CLI printed nothing for Limits.FirstByte or Limits.Idle
	KindStalled       ErrorKind = "stalled"
	KindStopped       ErrorKind = "stopped"         // the caller's context ended
	KindMalformed     ErrorKind = "malformed"       // no result, or a success without a call of the model
	KindDiskFull      ErrorKind = "disk_full"       // the CLI's output was lost, because the disk is full
	KindOutputTooLong ErrorKind = "output_too_long" // the CLI was stopped, because it printed too much
	KindFailed        ErrorKind = "failed"          // the CLI reported a failure of another kind
)

// Error describes a failed run.
type Error struct {
	Kind ErrorKind
	// Message is one sentence for people.
	Message string
	// ExitCode is the CLI's exit code. It is -1 if a signal ended the CLI, or if the CLI did not start.
	ExitCode int
	// APIStatus is the reported HTTP status of the API's last answer; 0 means none.
	APIStatus int
	// Until is the time at which a limit ends; zero if Kind is not KindLimited, or if the provider does not say it.
	Until time.Time
	// LimitKind is the provider's name for that limit (see LimitedModel); empty if it is not known.
	LimitKind string
	// Answered reports whether the model has answered in this invocation, at least in part.
	Answered bool
	// Stderr is the end of the CLI's standard error, with secrets masked.
	Stderr string
	// Err is the underlying Go error. It is nil if the failure is known only from the CLI's own message.
	Err error
}

// Error returns Message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
