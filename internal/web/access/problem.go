package access

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
)

// WriteProblem writes an error as problem details (RFC 9457).
func WriteProblem(w http.ResponseWriter, status int, err error) {
	if many, ok := errors.AsType[*TooManyError](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(many.After.Seconds())))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(status), status, err.Error()})
}
