package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// refusal is an error with which the proxy itself answers a request. The answer has the form of the API's errors.
type refusal struct {
	status int
	// kind is the API's name for the error.
	kind    string
	message string
}

// Error implements error.
func (r refusal) Error() string { return r.message }

func unknownKey() refusal {
	return refusal{http.StatusUnauthorized, "authentication_error", "this key is not valid, or its session has ended"}
}

func unknownCall(method, path string) refusal {
	message := fmt.Sprintf("%s %s is not passed on: a session may ask its model, and count tokens", method, path)
	return refusal{http.StatusNotFound, "not_found_error", message}
}

func tooMany() refusal {
	return refusal{http.StatusTooManyRequests, "rate_limit_error", "this session has too many calls under way"}
}

// statusOverloaded is the status with which the API says that it has too much to do.
const statusOverloaded = 529

// busy refuses a large request for now: the CLI tries it again.
func busy() refusal {
	return refusal{statusOverloaded, "overloaded_error", "this session has too many large calls under way"}
}

func unreadable(err error) refusal {
	if refused, ok := errors.AsType[refusal](err); ok {
		return refused
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return refusal{
			http.StatusRequestEntityTooLarge, "request_too_large",
			"the request is longer than the API takes",
		}
	}
	return refusal{http.StatusBadRequest, "invalid_request_error", err.Error()}
}

func foreignModel(model string) refusal {
	return refusal{
		http.StatusForbidden, "permission_error",
		fmt.Sprintf("this session may not ask the model %q", model),
	}
}

func foreignMember(name string) refusal {
	message := fmt.Sprintf("a session's request may not have the member %q", name)
	return refusal{http.StatusForbidden, "permission_error", message}
}

func foreignTool(kind string) refusal {
	message := fmt.Sprintf("this session may not have the API run a tool of the type %q", kind)
	return refusal{http.StatusForbidden, "permission_error", message}
}

// overBudget returns a refusal with status 402. After an answer with this status, both measured versions of the CLI
// end. After status 400 they would retry, and status 403 they would report as an authentication failure.
func overBudget(usd float64) refusal {
	return refusal{
		http.StatusPaymentRequired, "billing_error",
		fmt.Sprintf("this session has spent its budget of $%.4g", usd),
	}
}

// write sends the refusal and tells the caller whether to retry.
func (r refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Should-Retry", strconv.FormatBool(r.status == statusOverloaded))
	w.WriteHeader(r.status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // an error means that the caller has gone
		"type":  "error",
		"error": map[string]string{"type": r.kind, "message": r.message},
	})
}
