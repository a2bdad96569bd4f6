package access

import (
	"encoding/json"
	"net/http"
)

// WriteProblem writes an error as problem details (RFC 9457).
func WriteProblem(w http.ResponseWriter, status int, err error) {
	SetRetryAfter(w, err)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(status), status, err.Error()})
}
