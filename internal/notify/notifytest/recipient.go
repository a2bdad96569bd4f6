// Package notifytest has services for tests that people are notified by.
package notifytest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Secret is a part of each secret in the URLs of a recipient.
const Secret = "hunter2"

// Recipient is a service that people are notified by. It may be away for a while.
//
// It takes only what is posted to a path with Secret. A Temporal server that was stopped in the
// same process goes on looking for itself at the ports it had, and one of them may be this one's.
type Recipient struct {
	host string

	mu sync.Mutex
	// refuses is how many of the next messages it refuses; less than 0 is all.
	refuses int
	refused int
	got     []string
}

// Start starts a recipient that takes messages until the test's end.
func Start(t testing.TB) *Recipient {
	t.Helper()
	r := &Recipient{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.host = strings.TrimPrefix(server.URL, "http://")
	return r
}

// Generic is the URL by which it is notified in plain text.
func (r *Recipient) Generic() string {
	return fmt.Sprintf("generic://u:%[1]spass@%[2]s/hooks/%[1]stoken?disabletls=yes", Secret, r.host)
}

// Apprise is the URL by which it is notified as an Apprise API is, in JSON.
func (r *Recipient) Apprise() string {
	return fmt.Sprintf("apprise://ops:%[1]spass@%[2]s/%[1]skey", Secret, r.host)
}

// ServeHTTP implements http.Handler.
func (r *Recipient) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPost || !strings.Contains(request.URL.Path, Secret) {
		http.NotFound(w, request)
		return
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuses != 0 {
		r.refuses--
		r.refused++
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	r.got = append(r.got, string(body))
}

// Refuse has it refuse the next messages.
func (r *Recipient) Refuse(messages int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = messages
}

// Leave has it refuse every message until ComeBack.
func (r *Recipient) Leave() { r.Refuse(-1) }

// ComeBack has it take messages again.
func (r *Recipient) ComeBack() { r.Refuse(0) }

// Received returns the messages that it has taken, first to last.
func (r *Recipient) Received() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// Refusals is how many messages it has refused.
func (r *Recipient) Refusals() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}
