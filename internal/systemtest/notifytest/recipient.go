// Package notifytest provides notification services for tests.
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

// Secret occurs in each secret of a Recipient's URLs.
const Secret = "hunter2"

// Recipient is a notification service. It can be made unavailable.
//
// The recipient accepts POST requests to a path with Secret, and refuses all other requests. Other requests can come
// from a Temporal server that was stopped in the same process. Such a server continues to call its former ports, and
// the recipient may have got one of these ports.
type Recipient struct {
	host string

	mu sync.Mutex
	// refuses is the number of further messages to refuse. A negative number means all messages.
	refuses int
	refused int
	got     []string
}

// Start starts a recipient that runs until the end of the test.
func Start(t testing.TB) *Recipient {
	t.Helper()
	r := &Recipient{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.host = strings.TrimPrefix(server.URL, "http://")
	return r
}

// Generic returns the URL for notifications in plain text.
func (r *Recipient) Generic() string {
	return fmt.Sprintf("generic://u:%[1]spass@%[2]s/hooks/%[1]stoken?disabletls=yes", Secret, r.host)
}

// Apprise returns the URL for notifications in the JSON form of an Apprise API.
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

// Refuse makes the recipient refuse the given number of messages.
func (r *Recipient) Refuse(messages int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = messages
}

// Leave makes the recipient refuse all messages until ComeBack.
func (r *Recipient) Leave() { r.Refuse(-1) }

// ComeBack makes the recipient accept messages again.
func (r *Recipient) ComeBack() { r.Refuse(0) }

// Received returns the accepted messages in order.
func (r *Recipient) Received() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// Refusals returns the number of refused messages.
func (r *Recipient) Refusals() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}
