package claude

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// These texts occur in the CLI's error messages about a conversation. The CLI has no error codes for them.
const (
	noConversationText = "No conversation found with session ID"
	sessionInUseText   = "is already in use"
)

// finding is the reason why a run failed. The zero value means that the run did not fail.
type finding struct {
	kind    ErrorKind
	message string
	cause   error
}

// judge returns the error of a failed run, or nil. A run succeeded if the exit code is 0 and the last result is good. A
// good result has no error, the subtype success and at least one turn. If structured output was requested, the run must
// have returned it. The argument startErr is the error that prevented the CLI from running.
//
// A full disk has precedence over all other findings. The lost output would otherwise look like a retryable error.
//
// If a limit or a cancellation ended the CLI, that is an error even after a good result. The CLI was then still working
// in the background. The Result that is returned with this error is complete.
func (r *run) judge(exit process.Exit, startErr error) *Error {
	var found finding
	unavailable, refused := errors.AsType[*process.SandboxError](startErr)
	switch last := r.acc.last(); {
	case errors.Is(startErr, errDiskFull):
		found = finding{KindDiskFull, fmt.Sprintf("claude's output was lost: %v", startErr), startErr}
	case exit.StoppedBy != nil:
		found = r.judgeStop(exit.StoppedBy)
	case refused: // the invocation needs another configuration, or another host
		found = finding{KindInvalid, unavailable.Error(), startErr}
	case startErr != nil:
		found = finding{KindNotStarted, fmt.Sprintf("claude could not be run: %v", startErr), startErr}
	case last == nil:
		found = r.judgeSilence(exit)
	default:
		found = r.judgeResult(last, exit)
	}
	if found.kind == "" {
		return nil
	}
	return r.failure(found, exit)
}

// judgeStop returns the finding for a CLI that was stopped. The argument cause is the reason for the stop.
func (r *run) judgeStop(cause error) finding {
	limits := r.invocation.Limits
	switch {
	case errors.Is(cause, errWall) && r.unanswered():
		message := fmt.Sprintf("claude was stopped after %s: the model's provider did not answer%s", limits.Wall,
			r.meanwhile())
		return finding{KindStalled, message, cause}
	case errors.Is(cause, errWall):
		return finding{KindTimedOut, fmt.Sprintf("claude was stopped: it ran for its whole time limit of %s",
			limits.Wall), cause}
	case errors.Is(cause, errFirstByte):
		return finding{KindStalled, fmt.Sprintf("claude was stopped: it printed nothing in its first %s",
			limits.FirstByte), cause}
	case errors.Is(cause, errIdle):
		return finding{KindStalled, fmt.Sprintf("claude was stopped: it printed nothing for %s%s", limits.Idle,
			r.meanwhile()), cause}
	case errors.Is(cause, errLogin):
		return finding{
			KindAuth, r.explainAccess(r.acc.apiStatus, "the API refused the credentials again and again"),
			cause,
		}
	case errors.Is(cause, errFlood):
		return finding{KindOutputTooLong, fmt.Sprintf("claude was stopped: it printed more than %d bytes",
			r.cli.bounds.output), cause}
	case errors.Is(cause, errLongLine):
		message := fmt.Sprintf("claude was stopped: it printed a line of more than %d bytes", r.cli.bounds.line)
		return finding{KindOutputTooLong, message, cause}
	default:
		return finding{KindStopped, fmt.Sprintf("claude was stopped: %v", cause), cause}
	}
}

// unanswered reports whether the CLI waits for the model's provider, which has not answered its latest call or any.
func (r *run) unanswered() bool {
	silent := r.acc.lines > 0 && len(r.acc.usage.calls) == 0 && r.acc.last() == nil
	return r.acc.phase == PhaseRetrying || silent
}

// meanwhile returns the end of the message about a CLI that printed nothing for too long. It says what the CLI was
// doing in this time; "" if that is not known.
func (r *run) meanwhile() string {
	switch r.acc.phase {
	case PhaseRetrying:
		if r.acc.apiStatus == 0 {
			return " while the API could not be reached"
		}
		return fmt.Sprintf(" while the API kept failing (status %d)", r.acc.apiStatus)
	case PhaseTool:
		return " while a tool was running"
	case PhaseStarting, PhaseThinking, PhaseEnding:
		return ""
	}
	return ""
}

// judgeSilence returns the finding for a run without a result line. It uses the exit code and the standard error.
func (r *run) judgeSilence(exit process.Exit) finding {
	stderr := r.stderrText()
	said := complaint(stderr)
	switch {
	case strings.Contains(stderr, noConversationText):
		return finding{kind: KindNoConversation, message: said}
	case strings.Contains(stderr, sessionInUseText):
		return finding{kind: KindSessionInUse, message: said}
	case exit.Code == 1 && r.acc.lines == 0 && isComplaint(said):
		return finding{kind: KindUsage, message: "claude rejected its arguments: " + said}
	case said != "":
		return finding{kind: KindMalformed, message: fmt.Sprintf("claude ended without a result (%s): %s", exit, said)}
	default:
		return finding{kind: KindMalformed, message: fmt.Sprintf("claude ended without a result (%s)", exit)}
	}
}

// complaint returns the first line of the standard error that is marked as an error. If no line is marked, complaint
// returns the first line. It prefers marked lines, because the CLI can print warnings before the error, and some
// versions print source code.
func complaint(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if marked := slices.IndexFunc(lines, isComplaint); marked >= 0 {
		return strings.TrimSpace(lines[marked])
	}
	return strings.TrimSpace(lines[0])
}

// isComplaint reports whether line is marked as an error.
func isComplaint(line string) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "error:")
}

// judgeResult judges a run by its last result.
func (r *run) judgeResult(last *resultLine, exit process.Exit) finding {
	if last.IsError || last.Subtype != resultSuccess {
		return r.judgeFailure(last)
	}
	switch {
	case exit.Code != 0:
		return finding{kind: KindFailed, message: fmt.Sprintf("claude reported success but ended with %s", exit)}
	case last.Turns < 1:
		return finding{kind: KindMalformed, message: "claude reported success without having asked the model: " +
			r.explain(last)}
	case r.invocation.Schema != "" && !r.hasStructured():
		return finding{kind: KindNoStructuredOutput, message: "the agent ended without giving its structured output"}
	}
	return finding{}
}

func (r *run) hasStructured() bool {
	for _, result := range r.acc.results {
		if result.Structured != nil {
			return true
		}
	}
	return false
}

// judgeFailure judges a result that reports a failure.
func (r *run) judgeFailure(last *resultLine) finding {
	explanation := r.explain(last)
	switch {
	case last.Subtype == resultMaxTurns:
		return finding{kind: KindMaxTurns, message: "the agent used up its turns: " + explanation}
	case last.Subtype == resultMaxBudget:
		return finding{kind: KindBudget, message: "the agent used up its budget: " + explanation}
	case last.Subtype == resultSchemaNotMet:
		return finding{kind: KindSchemaNotMet, message: "the agent's structured output never met its schema: " +
			explanation}
	case last.TerminalReason == reasonPromptTooLong, r.acc.apiError == classAnswerTooLong && r.acc.cut == cutByWindow:
		return finding{kind: KindPromptTooLong, message: "the conversation no longer fits the model's window: " +
			explanation}
	case last.StopReason == stopRefusal:
		return finding{kind: KindRefused, message: r.refusal(explanation)}
	case r.acc.apiError == classAnswerTooLong:
		return finding{kind: KindAnswerTooLong, message: "the answer was longer than the model may write: " +
			explanation}
	case strings.Contains(explanation, noConversationText):
		return finding{kind: KindNoConversation, message: explanation}
	}
	status := int(last.APIStatus)
	switch kind := apiFailure(status, r.acc.apiError); {
	case r.acc.limit != nil && (status == http.StatusTooManyRequests ||
		status == 0 && r.acc.apiError == classRateLimit):
		return finding{kind: KindLimited, message: "a limit of the account is used up: " + explanation}
	case kind == KindAuth:
		return finding{kind: kind, message: r.explainAccess(status, explanation)}
	case kind == KindRequest && status == http.StatusNotFound:
		return finding{kind: kind, message: r.explainNotFound(explanation)}
	case kind != "":
		return finding{kind: kind, message: "the API call failed: " + explanation}
	}
	return finding{kind: KindFailed, message: fmt.Sprintf("claude failed (%s): %s", last.Subtype, explanation)}
}

// refusal returns the message about a model that refused: its words, the API's reason, and what the CLI says.
func (r *run) refusal(explanation string) string {
	said := ""
	if words := strings.TrimSpace(r.acc.lastText); words != "" {
		said = fmt.Sprintf(", after the words “%s”", oneLine(r.mask.Text(words), maxMessageRunes/4))
	}
	if r.acc.refusal != "" {
		said += " (" + r.acc.refusal + ")"
	}
	return fmt.Sprintf("the model refused%s: %s", said, explanation)
}

// explainAccess returns the message about credentials or an account that the API has refused.
func (r *run) explainAccess(status int, explanation string) string {
	if r.acc.apiError == classBilling {
		return "the account at the model's provider cannot pay: " + explanation
	}
	return AccessProblem(r.cli.options, cmp.Or(status, notLoggedIn)) + ": " + explanation
}

// explainNotFound returns the message about an address or a model that the API does not have. The CLI always blames the
// model.
func (r *run) explainNotFound(explanation string) string {
	if problem := AddressProblem(r.cli.options.Environ); problem != "" {
		return problem + ": " + explanation
	}
	return fmt.Sprintf("the API has no model %q for this account, or ANTHROPIC_BASE_URL is wrong: %s",
		r.invocation.Model, explanation)
}

// apiFailure returns the kind of a failed API call. It uses the HTTP status or, without a status, the CLI's own
// classification. If neither reports a failure of the API, apiFailure returns "".
func apiFailure(status int, class apiErrorClass) ErrorKind {
	switch {
	case class == classBilling:
		return KindAuth
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return KindAuth
	case status == http.StatusRequestEntityTooLarge:
		return KindPromptTooLong
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests,
		status >= http.StatusInternalServerError:
		return KindUnavailable
	case status >= http.StatusBadRequest:
		return KindRequest
	}
	switch class {
	case classAuthentication:
		return KindAuth
	case classRateLimit, classOverloaded, classServerError:
		return KindUnavailable
	case classBilling: // returned above
	case classAnswerTooLong: // the API has answered
	}
	return ""
}

// explain returns the explanation that the CLI gives in a result.
func (r *run) explain(last *resultLine) string {
	return cmp.Or(strings.Join(last.Errors, "; "), last.Text, r.stderrText(), "it gave no reason")
}

// failure returns the error for a finding. It masks secrets before it shortens the message. Otherwise it could leave a
// part of a secret that is no longer recognisable.
func (r *run) failure(found finding, exit process.Exit) *Error {
	status := r.acc.apiStatus
	if last := r.acc.last(); last != nil {
		status = int(last.APIStatus)
	}
	var limit usedUp
	if found.kind == KindLimited {
		limit = *r.acc.limit
	}
	return &Error{
		Kind:      found.kind,
		Message:   oneLine(r.mask.Text(found.message), maxMessageRunes),
		ExitCode:  exit.Code,
		APIStatus: status,
		Until:     limit.until,
		LimitKind: limit.kind,
		Answered:  len(r.acc.usage.calls) > 0,
		Stderr:    r.stderrText(),
		Err:       found.cause,
	}
}

// stderrText returns the end of the standard error. It masks secrets before it cuts the text.
func (r *run) stderrText() string {
	text := strings.ToValidUTF8(r.mask.Text(string(r.stderr.kept)), "�")
	return strings.TrimSpace(text[max(len(text)-maxStderrBytes, 0):])
}
