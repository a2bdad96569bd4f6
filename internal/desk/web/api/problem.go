package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"go.temporal.io/api/serviceerror"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// maxDetail limits an error, in characters. An error can contain words of agents.
const maxDetail = 1_000

// problem converts an error of an operation to problem details, with the same sentence.
func problem(err error) error {
	model := modelOf(err)
	if many, ok := errors.AsType[*access.TooManyError](err); ok {
		wait := strconv.Itoa(int(many.After.Seconds()))
		return huma.ErrorWithHeaders(model, http.Header{"Retry-After": {wait}})
	}
	return model
}

func modelOf(err error) *huma.ErrorModel {
	status := statusOf(err)
	model := &huma.ErrorModel{
		Title: http.StatusText(status), Status: status, Detail: plaintext.Cut(plaintext.Line(err.Error()), maxDetail),
	}
	if field, ok := errors.AsType[*operations.FieldError](err); ok {
		model.Errors = []*huma.ErrorDetail{{
			Message:  plaintext.Cut(plaintext.Line(field.Problem), maxDetail),
			Location: field.Field,
		}}
	}
	return model
}

// statusOf returns the status for an error.
func statusOf(err error) int {
	if _, many := errors.AsType[*access.TooManyError](err); many {
		return http.StatusTooManyRequests
	}
	if _, forbidden := errors.AsType[*access.ForbiddenError](err); forbidden {
		return http.StatusForbidden
	}
	switch operations.KindOf(err) {
	case operations.KindInvalid:
		return http.StatusUnprocessableEntity
	case operations.KindNotFound:
		return http.StatusNotFound
	case operations.KindConflict:
		return http.StatusConflict
	case operations.KindFailure:
	}
	return statusOfFailure(err)
}

// statusOfFailure returns 422 if Temporal finds fault with the input, and otherwise that of a server whose sources do
// not work.
func statusOfFailure(err error) int {
	if _, invalid := errors.AsType[*serviceerror.InvalidArgument](err); invalid {
		return http.StatusUnprocessableEntity
	}
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return http.StatusNotFound
	}
	if _, late := errors.AsType[*serviceerror.DeadlineExceeded](err); late || errors.Is(err, context.DeadlineExceeded) {
		return http.StatusGatewayTimeout
	}
	return http.StatusServiceUnavailable
}

// writeProblem answers a request of a stream with an error.
func writeProblem(w http.ResponseWriter, err error) {
	access.WriteProblem(w, statusOf(err), errors.New(modelOf(err).Detail))
}
