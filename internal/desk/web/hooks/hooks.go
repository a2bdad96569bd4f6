// Package hooks takes the alerts of monitoring systems. A request is answered after its alerts are recorded; what
// becomes of them, internal/desk/operations decides later.
package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
)

// Receiver records deliveries.
type Receiver interface {
	// Receive records a delivery, or returns an error. After an error that is neither KindInvalid nor KindNotFound,
	// nothing is recorded.
	Receive(ctx context.Context, delivery operations.Delivery) (operations.Received, error)
}

var _ Receiver = operations.Alerts{}

// Hooks is a part of the web server.
type Hooks struct {
	receiver Receiver
	logger   *slog.Logger
	woken    chan struct{}
}

// New returns the hooks of a server.
func New(receiver Receiver, logger *slog.Logger) *Hooks {
	return &Hooks{receiver, logger, make(chan struct{}, 1)}
}

// Woken returns a channel that gets a value after a delivery was recorded.
func (h *Hooks) Woken() <-chan struct{} { return h.woken }

// Register adds the routes.
func (h *Hooks) Register(router *access.Router) {
	for _, method := range []string{http.MethodPost, http.MethodPut} { // Grafana can send both
		router.Handle(access.Alert, method+" "+access.HooksPrefix+"{source}", http.HandlerFunc(h.receive))
	}
}

// answer is the answer to a delivery.
type answer struct {
	Received int `json:"received"`
}

// receive records a delivery. Monitoring systems repeat a request after 503, and give up after any other refusal.
func (h *Hooks) receive(w http.ResponseWriter, r *http.Request) {
	source := r.PathValue("source")
	person, _ := access.PersonOf(r.Context())
	if person.Name != source && !person.May(access.Operate) {
		access.WriteProblem(w, http.StatusForbidden,
			errors.New("a token for alerts is for the hook of its own name only"))
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		status := http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			status = http.StatusRequestEntityTooLarge
		}
		access.WriteProblem(w, status, err)
		return
	}
	received, err := h.receiver.Receive(r.Context(), operations.Delivery{Source: source, Header: r.Header, Body: body})
	switch {
	case err == nil:
	case operations.KindOf(err) == operations.KindNotFound:
		access.WriteProblem(w, http.StatusNotFound, err)
		return
	case operations.KindOf(err) == operations.KindInvalid:
		access.WriteProblem(w, http.StatusUnprocessableEntity, err)
		return
	default:
		h.logger.Error("an alert could not be recorded", slog.String("source", source), slog.Any("error", err))
		access.WriteProblem(w, http.StatusServiceUnavailable,
			errors.New("the records do not take it now: send it again"))
		return
	}
	select {
	case h.woken <- struct{}{}:
	default: // it is awake, and will look again
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer{len(received.Alerts)}) // an error means that the source has gone
}
