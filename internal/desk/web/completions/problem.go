package completions

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// maxProblem limits an error, in characters. An error can contain words of agents.
const maxProblem = 1_000

// fail answers a request with an error.
func fail(w http.ResponseWriter, err error) {
	if _, ended := errors.AsType[*noAnswerError](err); ended {
		w.Header().Set("X-Should-Retry", "false") // the packages of OpenAI would send it again, which costs again
	}
	access.SetRetryAfter(w, err)
	problemOf(err).Write(w)
}

// fail answers with an error, which is an event if the answer has begun.
func (w *writer) fail(err error) {
	if w.stream == nil {
		fail(w.response, err)
		return
	}
	if w.event(map[string]access.CompletionError{"error": problemOf(err)}) == nil {
		_ = w.send(done) // the client has what it needs
	}
}

// problemOf returns an error in its form for the client.
func problemOf(err error) access.CompletionError {
	message := plaintext.Cut(plaintext.Line(err.Error()), maxProblem)
	if mistake, ok := errors.AsType[*requestError](err); ok {
		return access.NewCompletionError(http.StatusBadRequest, message, mistake.param, "")
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		message = fmt.Sprintf("the request is too large: it may have %d bytes", tooLarge.Limit)
		return access.NewCompletionError(http.StatusRequestEntityTooLarge, message, "messages", "")
	}
	if ended, ok := errors.AsType[*noAnswerError](err); ok {
		status := http.StatusServiceUnavailable
		if ended.lasts {
			status = http.StatusUnprocessableEntity // what clients do not repeat, whatever they know of X-Should-Retry
		}
		return access.NewCompletionError(status, message, "", "turn_"+string(ended.turn.State))
	}
	status, code := statusOf(err)
	return access.NewCompletionError(status, message, "", code)
}

// statusOf returns the status of an error of an operation, and its code.
func statusOf(err error) (status int, code string) {
	if _, many := errors.AsType[*access.TooManyError](err); many || errors.Is(err, operations.ErrBusy) {
		return http.StatusTooManyRequests, "rate_limit_exceeded"
	}
	switch operations.KindOf(err) {
	case operations.KindInvalid:
		return http.StatusBadRequest, ""
	case operations.KindNotFound:
		return http.StatusNotFound, ""
	case operations.KindConflict:
		return http.StatusConflict, ""
	case operations.KindFailure:
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return http.StatusGatewayTimeout, ""
	}
	return http.StatusServiceUnavailable, ""
}

// noAnswerError is the error of a turn that has ended without an answer.
type noAnswerError struct {
	turn escalation.TalkTurn
	// lasts reports that the same message would fail again for the same reason.
	lasts bool
}

func (e *noAnswerError) Error() string { return e.turn.Failure }
