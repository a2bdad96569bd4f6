package claudesim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxRequestBytes limits the size of a request's body. The real API refuses bodies over 32 MB.
const maxRequestBytes = 64 << 20

// API is a Messages API on loopback that plays a scenario to the real CLI. Several CLIs can use it at once. The caller
// must close the API.
type API struct {
	scenario Scenario
	server   *http.Server
	listener net.Listener
	served   chan struct{}
	// closing is a channel that Close closes first. Closing the channel cancels delayed answers.
	closing chan struct{}

	mu       sync.Mutex
	requests []Request
	attempts map[string]int // number of attempts at each request, by fingerprint
}

// NewAPI starts an API that plays s on a free port of 127.0.0.1.
func NewAPI(s Scenario) (*API, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the scripted API: %w", err)
	}
	a := &API{
		scenario: s, listener: listener, attempts: map[string]int{},
		served: make(chan struct{}), closing: make(chan struct{}),
	}
	a.server = &http.Server{Handler: a.routes(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(a.served)
		_ = a.server.Serve(listener) // always ErrServerClosed or an error of the listener
	}()
	return a, nil
}

// URL returns the value for ANTHROPIC_BASE_URL.
func (a *API) URL() string { return "http://" + a.listener.Addr().String() }

// Requests returns the model calls received so far, in order. It omits the CLI's auxiliary calls.
func (a *API) Requests() []Request {
	return slices.DeleteFunc(a.AllRequests(), Request.Auxiliary)
}

// AllRequests returns all model calls received so far, in order.
func (a *API) AllRequests() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// Close stops the API and drops the open connections.
func (a *API) Close() error {
	close(a.closing)
	err := a.server.Close()
	<-a.served
	if err != nil {
		return fmt.Errorf("close the scripted API: %w", err)
	}
	return nil
}

func (a *API) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", a.serveMessage)
	mux.HandleFunc("POST /v1/messages/count_tokens", a.serveCount)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, struct{}{}) // the CLI checks with such requests whether a server is there
	})
	return mux
}

// serveCount counts tokens. Like the real API, it refuses the credentials that it refuses for a message.
func (a *API) serveCount(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	if err == nil {
		var request Request
		if request, err = parseRequest(body, r.Header); err == nil {
			if reply := a.scenario.play(request, 0); reply.Error != nil &&
				reply.Error.Status == http.StatusUnauthorized {
				writeError(w, *reply.Error)
				return
			}
		}
	}
	if err != nil {
		writeError(w, APIError{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, map[string]int{"input_tokens": DefaultUsage().Input})
}

func (a *API) serveMessage(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	if err != nil {
		writeError(w, APIError{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	request, err := parseRequest(body, r.Header)
	if err != nil {
		writeError(w, APIError{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	reply := a.record(request)
	if !a.wait(r.Context(), reply.Delay.Std()) {
		return
	}
	a.answer(w, request, reply)
}

// record stores the request and returns the reply to it.
func (a *API) record(request Request) Reply {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, request)
	if request.Auxiliary() {
		return Say("ok").Using(Usage{})
	}
	key := request.fingerprint()
	attempt := a.attempts[key]
	a.attempts[key]++
	return a.scenario.play(request, attempt)
}

// wait waits for d. It returns false if the client disconnects or the API is closed first.
func (a *API) wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-a.closing:
	}
	return false
}

func (a *API) answer(w http.ResponseWriter, request Request, reply Reply) {
	if reply.Error != nil {
		writeError(w, *reply.Error)
		return
	}
	blocks, err := reply.blocks(request)
	if err != nil {
		writeError(w, APIError{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	if reply.CreditsUntil != 0 {
		writeLimit(w, reply.CreditsUntil, "five_hour")
		w.Header().Set("Anthropic-Ratelimit-Unified-Overage-Status", "allowed")
	}
	message := newWireMessage(request, blocks, reply.usage()).stoppedBy(reply.Stop)
	message.pause = reply.PieceDelay.Std()
	if request.Stream {
		message.writeSSE(w)
		return
	}
	writeJSON(w, http.StatusOK, message)
}

// writeError answers with e. For StatusRefused it closes the connection instead.
func writeError(w http.ResponseWriter, e APIError) {
	if e.Status == StatusRefused {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close() // the closed connection is the answer
		}
		return
	}
	w.Header().Set("Request-Id", "req_scripted")
	if e.LimitedUntil != 0 {
		writeLimit(w, e.LimitedUntil, e.limitKind())
		w.Header().Set("Retry-After", "9000")
	}
	writeJSON(w, e.Status, map[string]any{
		"type":  "error",
		"error": map[string]string{"type": e.kind(), "message": e.text()},
	})
}

// writeLimit adds the headers of an answer that name a limit which is used up until a time, in seconds since 1970.
func writeLimit(w http.ResponseWriter, until int64, kind string) {
	w.Header().Set("Anthropic-Ratelimit-Unified-Status", "rejected")
	w.Header().Set("Anthropic-Ratelimit-Unified-Reset", strconv.FormatInt(until, 10))
	w.Header().Set("Anthropic-Ratelimit-Unified-Representative-Claim", kind)
}

// kind returns the API's name for the error.
func (e APIError) kind() string {
	switch {
	case e.Status == http.StatusUnauthorized:
		return "authentication_error"
	case e.Status == http.StatusForbidden:
		return "permission_error"
	case e.Status == http.StatusNotFound:
		return "not_found_error"
	case e.Status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case e.Status == 529:
		return "overloaded_error"
	case e.Status >= 500:
		return "api_error"
	default:
		return "invalid_request_error"
	}
}

func (e APIError) text() string {
	if e.Message != "" {
		return e.Message
	}
	return "scripted " + strings.ReplaceAll(e.kind(), "_", " ")
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error means that the client has disconnected
}
