package access

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// CompletionsPrefix begins the paths of clients of OpenAI's API.
const CompletionsPrefix = "/v1/"

// CompletionError is an error in the form of OpenAI's API.
type CompletionError struct {
	Status  int    `json:"-"`
	Message string `json:"message"`
	Type    string `json:"type"`
	// Param is the field of the request with the mistake, and Code names the error for programs; nil if there is none.
	Param *string `json:"param"`
	Code  *string `json:"code"`
}

// NewCompletionError returns an error with a status. The field param and the code can be empty.
func NewCompletionError(status int, message, param, code string) CompletionError {
	return CompletionError{
		Status: status, Message: message, Type: completionErrorType(status), Param: nonEmpty(param),
		Code: nonEmpty(code),
	}
}

func nonEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// completionErrorType returns the type that OpenAI's API gives errors with a status.
func completionErrorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	default:
		return "invalid_request_error"
	}
}

// Write answers a request with the error.
func (e CompletionError) Write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(map[string]CompletionError{"error": e})
}

// WriteError answers r with an error in the form that programs expect at its path: that of OpenAI's API, or problem
// details.
func WriteError(w http.ResponseWriter, r *http.Request, status int, err error) {
	if !strings.HasPrefix(r.URL.Path, CompletionsPrefix) {
		WriteProblem(w, status, err)
		return
	}
	code := ""
	switch status {
	case http.StatusUnauthorized:
		code = "invalid_api_key"
	case http.StatusTooManyRequests:
		code = "rate_limit_exceeded"
	}
	SetRetryAfter(w, err)
	NewCompletionError(status, err.Error(), "", code).Write(w)
}

// SetRetryAfter says when to try again, if err is a *TooManyError.
func SetRetryAfter(w http.ResponseWriter, err error) {
	if many, ok := errors.AsType[*TooManyError](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(many.After.Seconds())))
	}
}
